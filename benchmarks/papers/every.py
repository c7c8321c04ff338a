"""Every figure of the papers, one after another, as JSON and pictures: a part of `make bench`.

    python benchmarks/papers/every.py --quick --into build/papers

Without `--into` the committed results are measured again; then `page.py` makes their page. A quick
run never goes over them. Each figure is a process of its own, with its own progress. The last lines
say how long each took, and how much of that was its own work.
"""

import os
import subprocess
import sys
import time
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click

from papers.frame import RESULTS
from papers.page import ORDER


def command_of(name: str, into: Path, *, quick: bool) -> list[str]:
    """Return the command that measures a figure into a folder."""
    file = str(Path(__file__).parent / f"{name}.py")
    to = ["--json", str(into / f"{name}.json"), "--png", str(into / f"{name}.png")]
    return [sys.executable, file, *(["--quick"] if quick else []), *to]


def _processor_s() -> float:
    """Return the processor time of figures so far: what they take where nothing is beside them."""
    return sum(os.times()[2:4])


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
    for name in only or ORDER:
        (into / name).parent.mkdir(parents=True, exist_ok=True)
    took, failed = {}, []
    for name in only or ORDER:
        began, before = time.monotonic(), _processor_s()
        if subprocess.run(command_of(name, into, quick=quick), check=False).returncode:  # noqa: S603 (our own)
            failed.append(name)
        took[name] = time.monotonic() - began, _processor_s() - before
    for name, (seconds, used) in sorted(took.items(), key=lambda each: -each[1][0]):
        click.echo(f"{seconds:8.1f} s, {used:8.1f} s of processors  {name}")
    seconds, used = map(sum, zip(*took.values(), strict=True))
    click.echo(f"{seconds / 60:8.1f} min, {used / 60:8.1f} min of processors together")
    if failed:
        raise click.ClickException(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
