"""Every run that the evidence rests on, one after another, as JSON; then the page and its picture.

    python benchmarks/evidence/every.py --quick --into build/evidence

Without `--into` the committed results are measured again; a quick run never goes over them.
`--only speed` measures one run. Each is a process of its own, with its own progress.
"""

import subprocess
import sys
import time
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import click

from evidence import page, pictures
from evidence.runs import RESULTS, RUNS, path_of, records

BENCHMARKS = Path(__file__).resolve().parents[1]


def command_of(name: str, *, quick: bool) -> list[str]:
    """Return the command that prints a run's JSON."""
    run = RUNS[name]
    arguments = run.quick if quick else run.arguments
    return [sys.executable, str(BENCHMARKS / run.script), *arguments, run.json]


def measured(name: str, into: Path, *, quick: bool) -> bool:
    """Do a run; write its JSON whole, or not at all. Return whether it was written."""
    if not (BENCHMARKS / RUNS[name].script).exists():
        click.echo(f"{name}: there is no benchmarks/{RUNS[name].script}", err=True)
        return False
    began = time.monotonic()
    done = subprocess.run(command_of(name, quick=quick), stdout=subprocess.PIPE, check=False)  # noqa: S603 (our own)
    if done.returncode == 0:
        path_of(name, into).write_bytes(done.stdout)
    said = "measured" if done.returncode == 0 else f"failed with status {done.returncode}"
    click.echo(f"{name}: {said} in {time.monotonic() - began:.0f} s", err=True)
    return done.returncode == 0


def written(into: Path) -> None:
    """Write the page: the committed one, with README's lines, or one beside other JSON."""
    if into.resolve() == RESULTS:
        page.PAGE.write_text(page.page() + "\n")
        lines = page.readme(records())
        page.README.write_text(page.write_readme(page.README.read_text(), lines))
        where = page.PAGE
    else:
        where = into / "evidence.md"
        # Its pictures lie beside it.
        where.write_text(page.page(into).replace("](evidence/results/", "](") + "\n")
    click.echo(f"wrote {where}", err=True)


@click.command(help=__doc__)
@click.option("--quick", is_flag=True, help="Smaller and fewer: minutes become seconds.")
@click.option(
    "--only", type=click.Choice([*RUNS]), multiple=True, help="This run; may be repeated."
)
@click.option(
    "--into",
    type=click.Path(path_type=Path, file_okay=False),
    default=RESULTS,
    show_default="benchmarks/evidence/results",
    help="Where the JSON goes.",
)
def main(quick: bool, only: tuple[str, ...], into: Path) -> None:
    """Do every run, or some; go on after one that fails, and say which did."""
    if quick and into.resolve() == RESULTS:
        raise click.UsageError(
            "expected --into with --quick, got none: a quick run would replace the committed"
            " results; try --into build/evidence"
        )
    into.mkdir(parents=True, exist_ok=True)
    failed = [name for name in only or RUNS if not measured(name, into, quick=quick)]
    pictures.draw(into)
    written(into)
    if failed:
        raise click.ClickException(f"not measured: {', '.join(failed)}")


if __name__ == "__main__":
    main()
