"""Other worlds: models as programs, Dask, river, PyOD."""

COMMANDS = {
    "model export": (
        "submerge_bridges.export.command",
        "Write a model as a program for where Python is not.",
        "submerge[files]",
    )
}
"""Words -> the module of a command, what it does, what to install for it."""
