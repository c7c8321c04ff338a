"""Runs that claims rest on: what each executes, in full and in short, and where its JSON lies."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).with_name("results")
PAPERS = Path(__file__).parents[1] / "papers" / "results"


@dataclass(frozen=True)
class Run:
    """A benchmark that prints its record as JSON.

    script : its file in `benchmarks`
    arguments : of a full run
    quick : of a short one; a room has `--quick`
    json : what makes it print JSON
    """

    script: str
    arguments: tuple[str, ...] = ()
    quick: tuple[str, ...] = ("--quick",)
    json: str = "--json"

    @property
    def command(self) -> str:
        """The command of a full run, as a person types it."""
        return " ".join(("python", f"benchmarks/{self.script}", *self.arguments))


RUNS = {
    "equal_rank": Run("equal_rank.py"),
    "speed": Run("speed.py"),
    "memory": Run("memory.py"),
    "bytes_sent": Run("bytes_sent.py"),
    "survived": Run("survived.py"),
    "kills": Run("kills.py", ("--kills", "100"), ("--kills", "10")),
    "alarms": Run(
        "alarms.py",
        ("--mode", "rates", "--seeds", "106-110"),
        ("--mode", "rates", "--days", "9", "--nodes", "10", "--seeds", "106"),
        "--record",
    ),
    "detection": Run("detection.py"),
    "faces": Run("faces.py"),
    "influence": Run("influence.py"),
}


FIGURES = ("scaling_laws", "federated/scaling", "federated/peak_memory")
"""Figures of papers that the section on scaling shows as soon as they are measured."""


def path_of(name: str, folder: Path = RESULTS) -> Path:
    """Return where the JSON of a run or of a figure lies; those of papers have a folder beside."""
    if name not in FIGURES:
        return folder / f"{name}.json"
    papers = PAPERS if folder == RESULTS else folder.parent / "papers"
    return papers / f"{name}.json"


def records(folder: Path = RESULTS) -> dict[str, dict[str, Any]]:
    """Return what was measured, by name of run or figure; those without JSON are left out."""
    paths = {name: path_of(name, folder) for name in (*RUNS, *FIGURES)}
    return {name: json.loads(path.read_text()) for name, path in paths.items() if path.exists()}
