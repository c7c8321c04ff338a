"""`submerge replay`: files as a stream, here or into a running fleet, held against exact PCA."""
