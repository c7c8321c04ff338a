"""HTTP: health, readiness and metrics on a port, and the operator's admin API on a socket.

Requests become questions to the machine (`submerge_aggregator.questions`) or events for it.
Nothing here changes the machine by itself.
"""
