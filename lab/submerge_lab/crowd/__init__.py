"""`submerge lab crowd`: simulated nodes in one process, as a service for a fleet without sensors.
Each node is a client in all but its process, with a real uplink. Faults of networks and processes
are not simulated here; `submerge lab simulate` does that.
"""
