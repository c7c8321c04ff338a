"""Generated rows and printed tables under two core types of OpenBLAS, which adds in other orders.

    python benchmarks/core_types.py
    python benchmarks/core_types.py claims.py --quick
    python benchmarks/core_types.py equal_rank.py --quick --without "peak kB" --without "submerge's"

The first compares SHA-256 of each generator's first rows, the others the tables of a room as it
prints them. All run twice, under OPENBLAS_CORETYPE=Haswell and Prescott; the exit status is 1
where anything differs. Columns of times and of traced memory differ from run to run under one core
type, too: leave them out with `--without`. It needs x86-64 and a NumPy with an OpenBLAS that
chooses at run time.
"""

import difflib
import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import click
import numpy as np

import blas
from report import Table

CORE_TYPES = ("Haswell", "Prescott")
HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
LOADED = "loaded"
"""Beside the hashes: the core types that OpenBLAS says it runs."""


def generators() -> Iterator[tuple[str, Callable[[], np.ndarray]]]:
    """Yield each generator's name, and what returns its first rows."""
    import hard_streams
    from contest.streams import ALPHAS, spectrum
    from papers.federated.fleet import SynthPieces
    from plants.uneven import uneven
    from submerge_lab.plants.room import Room
    from support import clusters, kernels

    for alpha in ALPHAS:
        yield f"Synth({alpha:g})", lambda alpha=alpha: spectrum(alpha, n=200).rows
    yield "Synth in pieces", lambda: SynthPieces(400, 1.0, 50).made(3)
    yield "Room", lambda: Room(seed=0, days=1).readings(0, 2000)
    yield "Room, sound", lambda: Room(seed=0, days=1).sound(0, 2000)
    for name in ("engines", "loop"):
        yield name, lambda name=name: _first_of(name)
    for name, stream in hard_streams.STREAMS.items():
        yield f"hard: {name}", lambda stream=stream: stream(200, 48, np.random.default_rng(0))
    yield "uneven", lambda: uneven(500)
    yield "clustered", lambda: kernels.clustered(500)
    yield "unbalanced", lambda: kernels.unbalanced(0)
    yield "two rings", lambda: clusters.rings(200, seed=0)[0]


def _first_of(name: str) -> np.ndarray:
    from plants.plant import plant

    made = plant(name, nodes=2, days=2, quiet_days=0)
    return made.rows(1, 0, 200)


def hashes() -> dict[str, str]:
    """Return SHA-256 of each generator's first rows, and the core types that run."""
    import threadpoolctl

    sys.path.insert(0, str(TESTS))
    made = {name: np.ascontiguousarray(rows()) for name, rows in generators()}
    pools = threadpoolctl.threadpool_info()
    loaded = {str(pool.get("architecture")) for pool in pools if pool["user_api"] == "blas"}
    return {LOADED: ", ".join(sorted(loaded))} | {
        name: hashlib.sha256(rows.tobytes()).hexdigest() for name, rows in made.items()
    }


def under(core_type: str, arguments: list[str]) -> str:
    """Return what a program of this folder prints under a core type."""
    ran = subprocess.run(  # noqa: S603 (our own)
        [sys.executable, *arguments],
        env=os.environ | {"OPENBLAS_CORETYPE": core_type} | dict.fromkeys(blas.VARIABLES, "1"),
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    return ran.stdout


def both_hashes() -> list[dict[str, str]]:
    """Return the hashes under each core type."""
    return [json.loads(under(each, [__file__, "--hashes"])) for each in CORE_TYPES]


def differing(hashes: list[dict[str, str]]) -> list[str]:
    """Return the generators whose rows are not the same."""
    first, second = hashes
    return [name for name in first if name != LOADED and first[name] != second[name]]


def printed(core_type: str, room: list[str], without: tuple[str, ...]) -> list[str]:
    """Return the lines of a room's tables, in the digits that it prints, less some columns."""
    file = str(HERE / room[0])
    tables = json.loads(under(core_type, [file, *room[1:], "--json"]))["tables"]
    return "\n\n".join(less(Table(**each), without).markdown for each in tables).splitlines()


def less(table: Table, without: tuple[str, ...]) -> Table:
    """Return a table without the columns of some names."""
    places = [i for i, name in enumerate(table.columns) if name not in without]
    columns = {name: spec for name, spec in table.columns.items() if name not in without}
    return replace(
        table, columns=columns, rows=[tuple(row[i] for i in places) for row in table.rows]
    )


@click.command(help=__doc__, context_settings={"ignore_unknown_options": True})
@click.option("--hashes", "only", is_flag=True, help="Print this process's hashes as JSON.")
@click.option("--without", multiple=True, help="A column to leave out; may be repeated.")
@click.argument("room", nargs=-1, type=click.UNPROCESSED)
def main(only: bool, without: tuple[str, ...], room: tuple[str, ...]) -> None:
    """Compare, and print what differs."""
    if only:
        click.echo(json.dumps(hashes()))
        return
    if room and not (HERE / room[0]).is_file():
        raise click.UsageError(f"expected a file of benchmarks/, got {room[0]!r}; try claims.py")
    if room:
        pages = [printed(each, list(room), without) for each in CORE_TYPES]
        found = list(difflib.unified_diff(*pages, *CORE_TYPES, lineterm="", n=0))
        count, what = len(pages[0]), "lines of tables"
    else:
        both = both_hashes()
        if both[0][LOADED] == both[1][LOADED]:
            raise click.ClickException(
                f"expected two core types, got {both[0][LOADED]} twice: this needs x86-64 and"
                " OpenBLAS with DYNAMIC_ARCH"
            )
        found, count, what = differing(both), len(both[0]) - 1, "generators"
    click.echo("\n".join([*found, f"{count} {what}, {'differ' if found else 'the same'}"]))
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main()
