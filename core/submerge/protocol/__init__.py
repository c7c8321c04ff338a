"""What client and aggregator share: messages, settings, and the machine's events and effects.

`messages` is what nodes say to one another, `machine` what a driver gives a node and gets from
it, `session` the way to a parent, `summaries` what a node asks of a summary of either kind.
Messages become bytes in `submerge_proto`, and no decision of one kind of node is made here.
"""
