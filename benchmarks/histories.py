"""How long a history of 10^8 numbers takes, and how much memory.

10^6 rows of 100 channels, as Parquet and as CSV, are read by Arrow, which parses times, and by our
reader; learnt by `submerge.history` (all passes) and by scikit-learn's IncrementalPCA in one pass
with our reader, at the fastest of several batch sizes. Learning is timed again without reading, on
rows in memory. Each figure is from one process, one after another; ratios within a run hold,
seconds depend on the machine.
"""

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import click
import numpy as np

import blas  # noqa: F401 (before numpy: it sets one thread)
from report import Table
from submerge.history.first_pass import FirstPass
from submerge.history.fit import fit
from submerge.history.recording import Recorded
from submerge.history.settings import FitSettings
from submerge_files.reader import ReadingOptions, open_recordings

ROWS, CHANNELS, RANK = 1_000_000, 100, 10
IN_MEMORY = 200_000
BATCHES = (500, 1000, 2000, 5000)
EPOCH = 1_700_000_000.0


def rows_of(seed: int, n: int) -> np.ndarray:
    """Return rows of a plant with ten causes."""
    rng = np.random.default_rng((7, seed))
    causes = np.random.default_rng(7).normal(size=(RANK, CHANNELS))
    return rng.normal(size=(n, RANK)) @ causes + 0.3 * rng.normal(size=(n, CHANNELS)) + 20


def write(path: Path, rows: int) -> None:
    """Write the history, a row a second, with four decimals."""
    import pyarrow as pa
    from pyarrow.csv import CSVWriter
    from pyarrow.parquet import ParquetWriter

    names, step, writer = [f"c{i}" for i in range(CHANNELS)], 50_000, None
    kind = CSVWriter if path.suffix == ".csv" else ParquetWriter
    for first in range(0, rows, step):
        block = np.round(rows_of(first, min(step, rows - first)), 4)
        at = (EPOCH + first + np.arange(len(block))).astype("datetime64[s]")
        columns = dict(zip(names, block.T, strict=True))
        table = pa.table({"time": pa.array(at), **columns})
        writer = writer or kind(path, table.schema)
        writer.write_table(table)
    if writer is not None:
        writer.close()


def resident() -> float:
    """Return the most memory of this process so far, MiB."""
    # Not ru_maxrss, which begins with what the process had that started this one.
    status = Path("/proc/self/status").read_text()
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def in_memory() -> list[Recorded]:
    rows = rows_of(0, IN_MEMORY)
    times = EPOCH + np.arange(float(IN_MEMORY))
    return [
        Recorded("m", rows[i : i + 4096], times[i : i + 4096], "f", i + 1)
        for i in range(0, IN_MEMORY, 4096)
    ]


def by_arrow(path: Path) -> int:
    """Let Arrow read a file in blocks; return the number of rows."""
    from pyarrow.csv import open_csv
    from pyarrow.parquet import ParquetFile

    blocks = open_csv(path) if path.suffix == ".csv" else ParquetFile(path).iter_batches()
    return sum(len(block) for block in blocks)


def incremental(blocks: Iterator[np.ndarray], batch: int) -> None:
    """Let scikit-learn learn blocks in batches of that size."""
    from sklearn.decomposition import IncrementalPCA

    engine, held = IncrementalPCA(RANK), []
    for block in blocks:
        held.append(block)
        if sum(map(len, held)) >= batch:
            rows = np.concatenate(held)
            whole = len(rows) - len(rows) % batch
            for first in range(0, whole, batch):
                engine.partial_fit(rows[first : first + batch])
            held = [rows[whole:]]


def job(what: str, path: Path) -> dict[str, float]:
    """Do one thing in this process; return how long it took, and its memory."""
    if what.startswith("memory"):
        parts = in_memory()
        began = time.perf_counter()
        if what == "memory-learn":
            first = FirstPass([f"c{i}" for i in range(CHANNELS)], FitSettings())
            for part in parts:
                first.add(part)
            first.end()
        elif what == "memory-fit":
            fit(lambda: parts, [f"c{i}" for i in range(CHANNELS)])
        else:
            incremental((part.rows for part in parts), int(what.rpartition("-")[2]))
        return {"seconds": time.perf_counter() - began, "MiB": resident()}
    recordings = open_recordings([path], ReadingOptions())
    seen, half = 0, 0.0
    began = time.perf_counter()
    if what == "arrow":
        by_arrow(path)
    elif what == "read":
        for _ in recordings.rows():
            pass
    elif what == "fit":

        def advance(n: int) -> None:
            nonlocal seen, half
            seen += n
            half = half or (resident() if seen > 1.5 * ROWS else 0.0)  # of two passes

        fit(recordings.rows, recordings.names, look=recordings.looks, advance=advance)
    else:
        incremental((part.rows for part in recordings.rows()), int(what.rpartition("-")[2]))
    return {"seconds": time.perf_counter() - began, "MiB": resident(), "half MiB": half}


@click.command(help=__doc__)
@click.option("--rows", default=ROWS, show_default=True)
@click.option(
    "--times", default=1, show_default=True, help="Runs of each, of which the fastest counts."
)
@click.option("--one", hidden=True)
@click.option("--file", "path", type=click.Path(path_type=Path), hidden=True)
def main(rows: int, times: int, one: str | None, path: Path | None) -> None:
    """Run it, and print the table."""
    if one is not None and path is not None:
        click.echo(json.dumps(job(one, path)))
        return
    with tempfile.TemporaryDirectory() as folder:
        memory = {f"IncrementalPCA, {b}": f"memory-batch-{b}" for b in BATCHES}
        memory |= {"first pass": "memory-learn", "all passes": "memory-fit"}
        timed = _fastest(memory, Path(folder), times)
        best = min(BATCHES, key=lambda b: timed[f"IncrementalPCA, {b}"]["seconds"])
        one_pass = f"IncrementalPCA, {best}, one pass"
        jobs = {
            "Arrow's reader alone": "arrow",
            "our reader alone": "read",
            one_pass: f"batch-{best}",
            "submerge fit, all passes": "fit",
        }
        tables = [_table(f"{IN_MEMORY:,} rows in memory", timed, f"IncrementalPCA, {best}")]
        for name in ("Parquet", "CSV"):
            path = Path(folder) / f"history.{name.lower()}"
            write(path, rows)
            tables.append(_table(f"{rows:,} rows of {name}", _fastest(jobs, path, times), one_pass))
            path.unlink()
    click.echo("\n\n".join(table.markdown for table in tables))


def _fastest(jobs: dict[str, str], path: Path, times: int) -> dict[str, dict[str, float]]:
    """Do each job some times, in turn; return the fastest of each."""
    rounds = [{name: _run(what, path) for name, what in jobs.items()} for _ in range(times)]
    return {
        name: min((each[name] for each in rounds), key=lambda one: one["seconds"]) for name in jobs
    }


def _run(what: str, path: Path) -> dict[str, float]:
    words = [sys.executable, __file__, "--one", what, "--file", str(path)]
    done = subprocess.run(words, check=True, capture_output=True, text=True)  # noqa: S603
    told: dict[str, float] = json.loads(done.stdout)
    return told


def _table(title: str, every: dict[str, dict[str, float]], base: str) -> Table:
    heads = {
        "": "",
        "seconds": ".2f",
        "times as fast as scikit-learn": ".2f",
        "MiB at half of the last pass": ".0f",
        "MiB": ".0f",
    }
    rows: list[tuple[object, ...]] = [
        (
            name,
            each["seconds"],
            every[base]["seconds"] / each["seconds"],
            each.get("half MiB") or None,
            each["MiB"],
        )
        for name, each in every.items()
    ]
    return Table(title, heads, rows)


if __name__ == "__main__":
    main()
