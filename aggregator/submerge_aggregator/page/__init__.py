"""The page of an aggregator: what a browser shows of a fleet, and the orders that it sends."""
