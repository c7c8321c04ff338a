"""Recorded readings: read, fit, detect, score, drill, and the class `Model`."""

FILES = "submerge[files]"

COMMANDS = {
    "fit": ("submerge_files.fit.command", "Learn what is normal from files, with limits.", FILES),
    "detect": ("submerge_files.detect.command", "Find alarms in files, by a model.", FILES),
    "score": (
        "submerge_files.score.command",
        "Score files with a model, a line for each row.",
        FILES,
    ),
}
"""Words -> the module of a command, what it does, what to install for it."""
