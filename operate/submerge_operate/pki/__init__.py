"""`submerge pki` and `submerge pki kits`: a fleet's authority, certificates and kits. Private keys
are written here and nowhere else.
"""
