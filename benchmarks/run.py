"""All rooms, one after another, into benchmarks/results.md: what `make bench` runs.

Some twenty minutes, or with `--quick` five. Each room also runs alone:
`python benchmarks/speed.py --quick --json`.
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
import ceiling
import clustering
import durable
import features
import kernel_pca
import kernel_spe
import measure
import memory
import merging
import speed
import submerge

ROOMS = {
    "Speed": speed,
    "Ceiling": ceiling,
    "Accuracy": accuracy,
    "Memory": memory,
    "Merging": merging,
    "Durable": durable,
    "Feature maps": features,
    "Kernel PCA": kernel_pca,
    "SPE of features": kernel_spe,
    "Kernel clustering": clustering,
}


def circumstances() -> list[str]:
    """Return what a reader has to know to compare: machine, versions, clock, command."""
    built = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    versions = {
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in ("numpy", "scipy", "gensim")},
        "scikit-learn": importlib.metadata.version("scikit-learn"),
        "submerge": submerge.__version__,
    }
    return [
        f"machine: {_cpu()}, {os.cpu_count()} cores, {_ram_gib():.0f} GiB, {platform.platform()}",
        "versions: " + ", ".join(f"{name} {version}" for name, version in versions.items()),
        f"NumPy's BLAS: {built['name']} {built['version']}",
        "threads: " + "; ".join(blas.check()),
        f"load when it began: {os.getloadavg()[0]:.2f} (the machine should be quiet: below 0.3)",
        f"date: {datetime.datetime.now().astimezone():%Y-%m-%d %H:%M %z}",
        f"command: `{shlex.join(['python', *sys.argv])}`",
    ]


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(line.split(": ", 1)[1] for line in lines if line.startswith("model name"))
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def _ram_gib() -> float:
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Smaller and fewer: minutes become seconds.")
@click.option(
    "--output",
    type=click.Path(path_type=Path, dir_okay=False),
    default=Path(__file__).with_name("results.md"),
    show_default=True,
    help="Where the tables go.",
)
def main(quick: bool, output: Path) -> None:
    """Write the results of every room."""
    began = circumstances()
    text = ["# Benchmarks", "\n".join(f"* {line}" for line in began)]
    for name, module in ROOMS.items():
        text.append(f"## {name}\n\n{module.__doc__.strip()}\n\nAlone: `python {_path(module)}`")
        text += [table.markdown for table in module.room(quick)]
    output.write_text("\n\n".join(text) + "\n")
    measure.say(f"wrote {output}")


def _path(module: object) -> str:
    return f"benchmarks/{Path(module.__file__).name}"


if __name__ == "__main__":
    main()
