"""What is written down beside a measurement: commit, machine, versions, date, what was measured.

The hash is of the files that were measured, so a page can say that they have changed since. What
only writes a result down (this module among it) is no part of it.
"""

import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import blas

if TYPE_CHECKING:
    from report import Table

ROOT = Path(__file__).resolve().parents[1]
LIBRARIES = ("numpy", "scipy", "scikit-learn")

WRITES = ("benchmarks/page.py", "benchmarks/recorded.py", "benchmarks/report.py")
"""They write results, and measure nothing."""


def measured_hash(measures: Sequence[str]) -> str:
    """Return a hash of files and of the Python files of folders, by name and content."""
    total = hashlib.sha256()
    for each in sorted(measures):
        path = ROOT / each
        files = sorted(path.rglob("*.py")) if path.is_dir() else [path]
        for file in files:
            total.update(f"{file.relative_to(ROOT).as_posix()}\0".encode())
            total.update(file.read_bytes())
    return total.hexdigest()


def changed(made: dict) -> bool:
    """Return whether the files that a record measured are no longer what they were."""
    try:
        return measured_hash(made["measures"]) != made["measured"]
    except FileNotFoundError:
        return True


def circumstances(
    measures: Sequence[str], *, quick: bool, pools: Sequence[str]
) -> dict[str, object]:
    """Return what a measurement was made with, as values of JSON."""
    versions = {name: importlib.metadata.version(name) for name in LIBRARIES}
    return {
        "measures": list(measures),
        "quick": quick,
        "date": f"{datetime.datetime.now(datetime.UTC):%Y-%m-%d}",
        "commit": _commit(),
        "machine": f"{cpu()}, {os.cpu_count()} cores",
        "versions": {"python": platform.python_version(), **versions},
        "blas": list(pools),
        "measured": measured_hash(measures),
    }


def record(module: ModuleType, command: str, tables: "Sequence[Table]", *, quick: bool) -> str:
    """Return a room's tables with what they were measured with, as JSON.

    module : of the room: its docstring says what is measured; where it starts programs, its
        `STARTS` names their files and folders, which this process has not loaded
    command : that measures them
    """
    title, _, about = (module.__doc__ or "").partition("\n\n")
    measures = sorted({*loaded(), *getattr(module, "STARTS", ())})
    made = {
        "title": title.rstrip("."),
        "about": about.strip(),
        "command": command,
        **circumstances(measures, quick=quick, pools=blas.check()),
        "tables": [asdict(table) for table in tables],
    }
    return json.dumps(made, indent=1, default=_plain)


def loaded() -> list[str]:
    """Return the files of this repository that the process has imported, from its root."""
    found = set()
    for module in list(sys.modules.values()):
        file = getattr(module, "__file__", None)
        if not file or not (path := Path(file).resolve()).is_relative_to(ROOT):
            continue
        name = path.relative_to(ROOT).as_posix()
        if not name.startswith(".") and name not in WRITES:
            found.add(name)
    return sorted(found)


def cpu() -> str:
    """Return the processor's name."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _plain(value: object) -> object:
    """Return a NumPy scalar as the number that it holds."""
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"expected a number or text in a table, got {type(value).__name__}")


def _commit() -> str:
    try:
        found = subprocess.run(  # noqa: S603 (our own)
            [shutil.which("git") or "git", "-C", str(ROOT), "rev-parse", "--short=12", "HEAD"],
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return found.stdout.strip()
