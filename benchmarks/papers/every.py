"""Every figure of the papers, one after another, as JSON and pictures: a part of `make bench`.

    python benchmarks/papers/every.py --quick --into build/papers

Without `--into` the committed results are measured again; then `page.py` makes their page. A quick
run never goes over them. Each figure is a process of its own, with its own progress: two at once,
then one by one those that show seconds. The last lines say how long each took, and how much of that
was its own work.
"""

import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click

from papers.frame import RESULTS
from papers.page import ORDER

TIMED = ("federated/scaling", "federated/merge_error", "ny_kpca", "dis_kpca", "input_sparsity")
TIMED += ("scaling_laws",)
"""Figures that show seconds: nothing else runs beside them."""


def command_of(name: str, into: Path, *, quick: bool) -> list[str]:
    """Return the command that measures a figure into a folder."""
    file = str(Path(__file__).parent / f"{name}.py")
    to = ["--json", str(into / f"{name}.json"), "--png", str(into / f"{name}.png")]
    return [sys.executable, file, *(["--quick"] if quick else []), *to]


def measured(into: Path, quick: bool, name: str) -> tuple[float, float, bool]:
    """Measure a figure; return its seconds, those of processors, and whether it failed."""
    (into / name).parent.mkdir(parents=True, exist_ok=True)
    began = time.monotonic()
    child = subprocess.Popen(command_of(name, into, quick=quick))  # noqa: S603 (our own)
    _, child.returncode, used = os.wait4(child.pid, 0)
    return time.monotonic() - began, used.ru_utime + used.ru_stime, child.returncode != 0


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Smaller and fewer: minutes become seconds.")
@click.option(
    "--only", type=click.Choice(ORDER), multiple=True, help="This figure; may be repeated."
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=RESULTS,
    show_default="benchmarks/papers/results",
    help="Where the JSON and the pictures go.",
)
def main(quick: bool, only: tuple[str, ...], into: Path) -> None:
    """Measure every figure, or some; go on after one that fails, and say which did."""
    if quick and into.resolve() == RESULTS:
        raise click.UsageError(
            "expected --into with --quick, got none: a quick run would replace the committed"
            " results; try --into build/papers"
        )
    names, began = only or ORDER, time.monotonic()
    measure, beside = partial(measured, into, quick), [n for n in names if n not in TIMED]
    with ThreadPoolExecutor(2) as two:
        took = dict(zip(beside, two.map(measure, beside), strict=True))
    took |= {name: measure(name) for name in names if name in TIMED}
    for name, (seconds, used, _) in sorted(took.items(), key=lambda each: -each[1][0]):
        click.echo(f"{seconds:8.1f} s, {used:8.1f} s of processors  {name}")
    minutes = (time.monotonic() - began) / 60, sum(each[1] for each in took.values()) / 60
    click.echo(f"{minutes[0]:8.1f} min, {minutes[1]:8.1f} min of processors together")
    if failed := [name for name in names if took[name][2]]:
        raise click.ClickException(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
