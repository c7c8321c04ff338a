"""`submerge score`: files in, a score for each row out, by a model."""
