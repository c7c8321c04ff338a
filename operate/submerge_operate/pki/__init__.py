"""`submerge pki` and `submerge pki kits`: a fleet's authority, certificates and kits."""
