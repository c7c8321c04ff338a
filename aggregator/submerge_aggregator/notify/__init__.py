"""Notifications: alarms of all nodes below an aggregator, sent to people.

Which alarms changed is found in the batch that changed them; a thread of its own sends them
through the sinks of `submerge_client.alarms`. No alarm is raised or ended here.
"""
