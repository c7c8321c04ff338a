"""The client as a program: sensors, a parent, scores and alarms; `submerge.client` decides."""

COMMANDS = {"client": ("submerge_client.command", "Run a client, on a device.", "submerge[client]")}
"""Words -> the module of a command, what it does, what to install for it."""
