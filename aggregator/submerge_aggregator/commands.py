"""The commands of this package: words -> (module, what it does, what to install for it)."""

COMMANDS = {
    "aggregator": (
        "submerge_aggregator.command",
        "Run an aggregator, or the root; its page, audit log and tokens.",
        "submerge[aggregator]",
    ),
}
