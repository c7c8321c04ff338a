"""HTTP: health, readiness and metrics on a port, and the operator's admin API on a socket."""
