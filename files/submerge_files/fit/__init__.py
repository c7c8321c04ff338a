"""`submerge fit`: files of recorded readings become a model with limits, without a fleet."""
