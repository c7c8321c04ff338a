"""The commands of this package: words -> (module, what it does, what to install for it)."""

COMMANDS = {
    "model export": (
        "submerge_bridges.export.command",
        "Write a model as a program for where Python is not.",
        "submerge[files]",
    ),
}
