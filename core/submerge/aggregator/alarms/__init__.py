"""The alarms of all nodes below: which are believed, and what follows from them for the group.

The limits widen from them, and answers to drills say what they would miss. No alarm is raised or
ended here, and nothing is sent to people (`submerge_aggregator.notify`).
"""
