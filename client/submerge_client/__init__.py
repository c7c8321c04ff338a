"""The client as a program: it reads sensors, reports to a parent, and writes scores and alarms.

What becomes of a reading is decided in `submerge.client`, which does no input or output. Nothing
here knows what an aggregator does with a report.
"""

COMMANDS = {
    "client": ("submerge_client.command", "Run a client, on a device.", "submerge[client]"),
}
"""Words -> the module of a command, what it does, what to install for it."""
