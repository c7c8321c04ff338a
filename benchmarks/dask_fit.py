"""A history learnt on a Dask cluster: the workers' time over a plain loop's, and the model's hash.

Rows of machines are written as Parquet. A process reads them as `submerge fit` does, alone; then a
scheduler with one worker process, and with two, of which one is killed on the way in another run.
Processor times are those of the workers' processes while they work, without their start and without
what they import. Wall-clock time is from the first task to the model, without the start.
"""

from __future__ import annotations

import hashlib
import os

# Before NumPy loads, as the command and Dask's workers have it.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import signal
import statistics
import subprocess
import sys
import tempfile
import time
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import click
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from submerge.history.fit import Fitted, fit, fit_rows
from submerge.history.settings import FitSettings
from submerge_files.model_file import learnt_of
from submerge_files.reader import ReadingOptions, Recordings, open_recordings
from submerge_proto.files import learnt as learnt_file

PERIOD_S, EPOCH, CAUSES = 10.0, 1.76e9, 6


class Run(NamedTuple):
    """What a run took, and what it gave.

    cpu_s : of the process that reads, or of all workers
    wall_s : from its begin to the model
    """

    cpu_s: float
    wall_s: float
    sha256: str


def write(folder: Path, machines: int, rows: int, channels: int) -> None:
    """Write the rows of machines: some causes that drift, and noise."""
    pattern = np.random.default_rng(0).normal(size=(CAUSES, channels))
    times = (EPOCH * 1e6 + PERIOD_S * 1e6 * np.arange(rows)).astype("M8[us]")
    for machine in range(machines):
        rng = np.random.default_rng(1 + machine)
        causes = np.cumsum(rng.normal(size=(rows, CAUSES)), axis=0) % 40 - 20
        values = causes @ pattern + rng.normal(size=(rows, channels))
        columns = {f"c{i}": values[:, i] for i in range(channels)}
        pq.write_table(pa.table({"time": times} | columns), folder / f"m{machine}.parquet")


def opened(folder: Path, machines: int) -> Recordings:
    by = "file" if machines > 1 else ""
    return open_recordings([folder], ReadingOptions(node_by=by))


def sha(fitted: Fitted) -> str:
    return hashlib.sha256(learnt_file.packed(learnt_of(fitted))).hexdigest()


def alone(folder: Path, machines: int) -> Run:
    """Learn them in this process."""
    recordings = opened(folder, machines)
    began, used = time.perf_counter(), time.process_time()
    look = partial(recordings.looks, None)
    fitted = fit(recordings.rows, recordings.channels, FitSettings(), look=look)
    return Run(time.process_time() - used, time.perf_counter() - began, sha(fitted))


def spread(folder: Path, machines: int, workers: int, *, kills: bool) -> Run:
    """Learn them on workers; one of these may be killed once the first cells are learnt."""
    from distributed import Client, LocalCluster

    from submerge_bridges.on_dask.cluster import Cluster
    from submerge_files.fit.apart import RowsApart

    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=None) as local,
        Client(local) as client,
    ):
        cluster = Cluster(client)
        recordings = opened(folder, machines)
        parts = recordings.pieces()
        client.run(_imported)
        pids = list(client.run(os.getpid).values())

        def advance(n: int) -> None:
            if kills and n and pids:
                os.kill(pids.pop(), signal.SIGKILL)

        began, used = time.perf_counter(), sum(client.run(time.process_time).values())
        rows = RowsApart(cluster, parts, advance)
        fitted = fit_rows(rows, recordings.channels, FitSettings())
        wall_s = time.perf_counter() - began
        return Run(sum(client.run(time.process_time).values()) - used, wall_s, sha(fitted))


def _imported() -> None:
    """Import what tasks need, and call BLAS once."""
    import submerge_files.fit.apart as _  # noqa: F401
    import submerge_files.reader.formats.arrow_file as arrow_file

    arrow_file.import_pyarrow()
    np.linalg.eigh(np.eye(8))


def in_process(arguments: list[str]) -> Run:
    """Run this file once more, in a process of its own."""
    command = [sys.executable, __file__, *arguments]
    said = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout  # noqa: S603
    cpu_s, wall_s, digest = said.split()[-3:]
    return Run(float(cpu_s), float(wall_s), digest)


KINDS: dict[str, Any] = {
    "without Dask": alone,
    "1 worker": partial(spread, workers=1, kills=False),
    "2 workers": partial(spread, workers=2, kills=False),
    "2 workers, one killed": partial(spread, workers=2, kills=True),
}


@click.command(help=__doc__)
@click.option("--machines", default=8, show_default=True)
@click.option("--rows", default=250_000, show_default=True, help="Of each machine.")
@click.option("--channels", default=30, show_default=True)
@click.option("--times", default=3, show_default=True, help="Runs of each; medians are printed.")
@click.option("--one", hidden=True)
@click.option("--folder", hidden=True, type=click.Path(path_type=Path))
def main(
    machines: int, rows: int, channels: int, times: int, one: str | None, folder: Path | None
) -> None:
    if one is not None and folder is not None:
        print(*KINDS[one](folder, machines))
        return
    with tempfile.TemporaryDirectory() as place:
        write(Path(place), machines, rows, channels)
        print(f"{machines} machines x {rows:,} rows x {channels} channels, {os.cpu_count()} cores")
        print("| run | processor s | over a plain loop | wall s | speed-up | SHA-256 |")
        print("|---|---|---|---|---|---|")
        base: Run | None = None
        for kind in KINDS:
            given = ["--one", kind, "--folder", place, "--machines", str(machines)]
            runs = [in_process(given) for _ in range(times)]
            cpu_s = statistics.median(run.cpu_s for run in runs)
            wall_s = statistics.median(run.wall_s for run in runs)
            digests = {run.sha256 for run in runs}
            base = base or Run(cpu_s, wall_s, "")
            # The processor time of a process that was killed is lost with it.
            share = "-" if "killed" in kind else f"{cpu_s / base.cpu_s:.2f}"
            said = ", ".join(sorted(digest[:16] for digest in digests))
            print(
                f"| {kind} | {cpu_s:.2f} | {share} | {wall_s:.2f} | {base.wall_s / wall_s:.2f}"
                f" | {said} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
