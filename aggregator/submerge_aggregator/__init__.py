"""The aggregator as a program: it serves children, keeps a store, and publishes models."""

COMMANDS = {
    "aggregator": (
        "submerge_aggregator.command",
        "Run an aggregator, or the root; its page, audit log and tokens.",
        "submerge[aggregator]",
    )
}
"""Words -> the module of a command, what it does, what to install for it."""
