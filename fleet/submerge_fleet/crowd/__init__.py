"""`submerge crowd`: simulated nodes in one process, as a service for a fleet without sensors."""
