"""Questions to an aggregator's machine, and the plain values that answer them."""
