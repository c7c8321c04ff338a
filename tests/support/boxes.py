"""A box: `submerge up` as a real process, its lines, and rows for it to read."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from support.patience import until
from support.programs import SUBMERGE, Program, Programs

NAMES = ("a", "b", "c")


def rows_of(n: int, seed: int = 0, *, jump: float = 0.0) -> bytes:
    """Return rows of a machine as lines of JSON; the last channel is off by `jump`."""
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(n, 1)) * (1.0, 2.0, -1.0) + 0.1 * rng.normal(size=(n, 3))
    rows[:, 2] += jump
    return "".join(f"{json.dumps(row)}\n" for row in rows.round(4).tolist()).encode()


class Box:
    """A machine in a folder of a test.

    Parameters
    ----------
    programs : Programs
    more : str
        Further sections of its configuration.
    sensor : str
        The settings of [sensor].
    channels : sequence of str
    node : str
    top : str
        Further settings without a section.
    log : str
    folder : Path, optional
        Where it keeps what it knows.
    """

    def __init__(
        self,
        programs: Programs,
        more: str = "",
        *,
        sensor: str = 'kind = "ndjson"',
        channels: Sequence[str] = NAMES,
        node: str = "desk",
        top: str = "",
        log: str = "info",
        folder: Path | None = None,
    ) -> None:
        self._programs, self.node = programs, node
        self.folder = folder or programs.folder / f"{node}-kept"
        top = f'{top}\nnode = "{node}"\nfolder = "{self.folder}"\nlog = "{log}"\n'
        sections = f"[sensor]\n{sensor}\n[schema]\nchannels = {json.dumps(list(channels))}\n{more}"
        self.config = programs.file(f"{node}.toml", top + sections)

    def start(self, *options: str, **how: Any) -> Program:
        """Start it, and wait until it reads."""
        program = self._programs.start("up", "--config", self.config, "--json", *options, **how)
        program.until("reading")
        return program


def lines_of(program: Program) -> list[dict[str, Any]]:
    """Return what it has said about itself."""
    return [json.loads(line) for line in list(program.out)]


def last_line(program: Program) -> dict[str, Any]:
    """End it, and return its last line."""
    assert 0 == program.end(), program.log
    return lines_of(program)[-1]


def until_read(program: Program, rows: int) -> None:
    """Wait until a line says that it has read so many rows."""
    until(
        lambda: any(line["rows"] >= rows for line in lines_of(program)),
        lambda: f"{rows} rows; its lines: {program.out}; its log:\n{program.log}",
        lambda: (len(program.lines), len(program.out)),
    )


def fed(program: Program, data: bytes) -> None:
    """Write rows, end the input, and wait until it has ended with status 0."""
    program.write(data)
    program._process.stdin.close()
    assert 0 == program.ended(), program.log


def ran(folder: Path, *args: str) -> str:
    """Run a command in a folder; return what it printed."""
    done = subprocess.run(
        [SUBMERGE, *args], cwd=folder, capture_output=True, text=True, check=False
    )
    assert 0 == done.returncode, done.stderr
    return done.stdout


def counted(box: Box, name: str) -> int:
    """Return how many readings of a node the box holds: learnt, or withheld by an alarm."""
    store = box.folder / "root.db"
    said = ran(box.folder, "nodes", "list", "--store", str(store), "--json")
    nodes = [node for node in json.loads(said) if node["node"] == name]
    rows = [row for node in nodes for row in (*node["rows"], *node["sealed"])]
    return sum(row["learnt"] + row["withheld"] for row in rows)
