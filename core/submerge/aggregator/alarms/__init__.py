"""The alarms of all nodes below: which are believed. None is raised or sent to people here."""
