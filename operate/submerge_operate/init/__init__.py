"""`submerge init`: looks where readings come from, and writes the configuration of one machine."""
