"""What is written down beside a measurement: commit, machine, versions, date, what was measured.

The hash is of the files that were measured, so a page can say that they have changed since. What
only writes a result down (this module among it) is no part of it.

A page has a mark for each script whose figures it shows, `<!-- measured SCRIPT HASH at COMMIT -->`,
of the script and all that it imports. `python benchmarks/recorded.py` prints which pages are older
than their code; with a script, the mark for a page that has just been measured.
"""

import ast
import datetime
import hashlib
import importlib.metadata
import json
import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from functools import cache
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

ENDS = (".py", "/__init__.py")
PACKAGES = (
    "benchmarks",
    "core",
    "proto",
    "client",
    "aggregator",
    "files",
    "operate",
    "bridges",
    "lab",
)
MARK = re.compile(r"<!-- measured (?P<script>\S+) (?P<hash>\w+) at (?P<commit>\w+) -->")


def mark_of(script: str) -> str:
    """Return the mark for figures that a script has printed now."""
    return f"<!-- measured {script} {measured_hash(imported(script))[:16]} at {commit()} -->"


def marked(text: str) -> str:
    """Return a page, with a sentence for each mark of other code."""

    def sentence(mark: re.Match[str]) -> str:
        script = mark["script"]
        if _is_of_now(script, mark["hash"]):
            return mark[0]
        return (
            f"**Older than its code:** `{script}`, or what it imports, has changed since its"
            f" figures were measured (at {mark['commit']})."
        )

    return MARK.sub(sentence, text)


def outdated() -> list[str]:
    """Return a line for each page of figures that is older than its code."""
    lines = []
    for page in sorted(ROOT.joinpath("benchmarks").glob("*.md")):
        marks = MARK.finditer(page.read_text())
        old = [m["script"] for m in marks if not _is_of_now(m["script"], m["hash"])]
        if old:
            lines.append(f"older than its code: benchmarks/{page.name} ({', '.join(old)})")
    for name in ("evidence", "papers"):
        results = sorted(ROOT.glob(f"benchmarks/{name}/results/**/*.json"))
        made = {each.stem: json.loads(each.read_text()) for each in results}
        if old := [each for each, record_ in made.items() if changed(record_)]:
            lines.append(f"older than its code: benchmarks/{name}.md ({', '.join(old)})")
    return lines


def imported(script: str) -> list[str]:
    """Return a script and the files of this repository that it imports, also through others."""
    found, waiting = set[str](), [script]
    while waiting:
        name = waiting.pop()
        if name not in found:
            found.add(name)
            waiting += _imports(name) if name.endswith(".py") else ()
    return sorted(found - set(WRITES))


@cache
def _imports(name: str) -> tuple[str, ...]:
    """Return the files that a file imports, and those that it starts."""
    modules, started = set[str](), list[str]()
    for node in ast.walk(ast.parse(ROOT.joinpath(name).read_text())):
        if isinstance(node, ast.Import):
            modules.update(each.name for each in node.names)
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "STARTS":
            started += ast.literal_eval(node.value)
        elif isinstance(node, ast.ImportFrom) and node.module:
            modules.add(node.module)
            modules.update(f"{node.module}.{each.name}" for each in node.names)
    parts = (module.split(".") for module in modules)
    paths = {"/".join(each[:n]) for each in parts for n in range(1, len(each) + 1)}
    files = (f"{top}/{path}{end}" for top in PACKAGES for path in paths for end in ENDS)
    return *started, *(file for file in files if ROOT.joinpath(file).is_file())


def _is_of_now(script: str, digest: str) -> bool:
    try:
        return measured_hash(imported(script)).startswith(digest)
    except FileNotFoundError:
        return False


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
        "commit": commit(),
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


def commit() -> str:
    """Return the commit that is checked out, shortened."""
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


if __name__ == "__main__":
    print("\n".join(map(mark_of, sys.argv[1:]) if sys.argv[1:] else outdated()))
