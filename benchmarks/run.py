"""The rooms of the linear engine, one after another, into benchmarks/results.md.

`make bench FULL=1` runs them: some thirty minutes, or with `--quick` eight. `--only Merging`
measures one room again and leaves the others of the page as they are. Each room also runs alone:
`python benchmarks/speed.py --quick --json`. Rooms with a page of their own are not here.
"""

import datetime
import importlib.metadata
import os
import platform
import shlex
import sys
from pathlib import Path

import click
import numpy as np

import accuracy
import blas
import blocks
import bounds
import calls
import ceiling
import measure
import memory
import merging
import narrow
import speed
import submerge
import sweep
from recorded import cpu, mark_of

ROOMS = {
    "Calls": calls,
    "Blocks": blocks,
    "Every dimension": sweep,
    "Speed": speed,
    "Ceiling": ceiling,
    "Accuracy": accuracy,
    "Bounds": bounds,
    "Memory": memory,
    "Merging": merging,
    "Narrow merging": narrow,
}


def circumstances() -> list[str]:
    """Return what a reader has to know to compare: machine, versions, clock, command."""
    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    versions = {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "scipy", "gensim")},
        "scikit-learn": importlib.metadata.version("scikit-learn"),
        "scikit-learn-intelex": _intelex(),
        "submerge": submerge.__version__,
    }
    return [
        f"machine: {cpu()}, {os.cpu_count()} cores, {_ram_gib():.0f} GiB, {platform.platform()}",
        "versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"NumPy's BLAS: {built['name']} {built['version']}",
        "threads: " + "; ".join(blas.check()),
        f"command: `{shlex.join(['python', *sys.argv])}`",
    ]


def section(name: str, quick: bool) -> str:
    """Measure a room, and return its part of the page."""
    module = ROOMS[name]
    when = f"{datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %z}"
    load = os.getloadavg()[0]
    # A quiet machine has a load below 0.3.
    about = f"Alone: `python {_path(module)}`. Measured {when}, load {load:.1f} at first."
    mark = mark_of(_path(module))
    tables = [table.markdown for table in module.room(quick)]
    return "\n\n".join([f"## {name}", module.__doc__.strip(), about, mark, *tables])


def sections(page: str) -> dict[str, str]:
    """Return the parts of a page that was written before, by name."""
    _, *parts = page.split("\n## ")
    return {part.split("\n", 1)[0]: f"## {part.strip()}" for part in parts}


def _intelex() -> str:
    try:
        return importlib.metadata.version("scikit-learn-intelex")
    except importlib.metadata.PackageNotFoundError:
        return "not installed (its rivals are left out)"


def _ram_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Smaller and fewer: minutes become seconds.")
@click.option(
    "--only",
    type=click.Choice(tuple(ROOMS)),
    multiple=True,
    help="Measure this room, and keep the others of the page; may be repeated.",
)
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path(__file__).with_name("results.md"),
    show_default=True,
    help="Where the tables go.",
)
def main(quick: bool, only: tuple[str, ...], output: Path) -> None:
    """Write the results of every room, or of some, and keep those of the others."""
    parts = sections(output.read_text()) if only else {}
    head = "\n".join(["# Benchmarks", "", *(f"* {line}" for line in circumstances())])
    for name in only or ROOMS:
        parts[name] = section(name, quick)
        # After each: what is measured already outlives an interruption.
        ordered = (parts[room] for room in ROOMS if room in parts)
        output.write_text("\n\n".join([head, *ordered]) + "\n")
    measure.say(f"wrote {output}")


def _path(module: object) -> str:
    return f"benchmarks/{Path(module.__file__).name}"


if __name__ == "__main__":
    main()
