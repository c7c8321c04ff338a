"""`submerge doctor`: checks of links, machine, certificates and software. It changes nothing."""
