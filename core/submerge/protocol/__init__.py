"""What client and aggregator share: messages, settings, and the machine's events and effects.

`messages` travel between nodes, `machine` is what a driver gives a node and gets from it, `session`
is the way to a parent, and `summaries` is what a node does with summaries of either kind.
`submerge_proto` turns messages into bytes. Decisions of one kind of node are not made here.
"""
