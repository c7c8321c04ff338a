"""HTTP: health, readiness and metrics for everybody, and the operator's socket.

Requests become questions to the machine (`submerge_aggregator.questions`) or orders for it;
nothing here changes the machine by itself.
"""
