"""The commands of this package: words -> (module, what it does, what to install for it)."""

COMMANDS = {
    "client": ("submerge_client.command", "Run a client, on a device.", "submerge[client]"),
}
