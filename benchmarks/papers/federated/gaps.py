"""Gaps, the paper's future work: a log with missing values through a fleet, scaled and not.

`submerge replay LOG --missing impute --into grpc://...`: a root, and three clients that deal the
rows among themselves; each fills gaps by its model, and learns them as its expectation of them.
Rank 10 with five spare directions. "fleet" measures the centre and scale of each channel first, by
1,000 readings (`--fleet-scaling`); "none" takes degrees, per cent, lux and volts as they are.

The raw log of the Intel lab is read where it is (`motes/data.txt`, in SUBMERGE_DATA). Where it is
not, the generated room is written in the log's form, and read as the log is: 54 motes of four
quantities, with its dropouts, and with 30 % of all lines left out besides. Light is the mote set
itself, in which zero is missing.

A fiftieth of the values that are there is hidden from the fleet. Explained is the share of their
variance, of each quantity, that the root's model explains when it fills them from the others: 0 is
their channel's mean, 1 no error. "one engine" learns the same rows, scaled alike, in this process.
"""

import asyncio
import json
import sys
import threading
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

import numpy as np

import measure
from papers.federated.follow import Array
from papers.federated.streams import found as place_of
from papers.frame import Figure, about, command
from report import Table
from submerge import SAPCA, Schema
from submerge.pca.expectation import Guesses
from submerge.pca.missing import fill
from submerge_aggregator.assembly import server_of
from submerge_aggregator.config import AggregatorConfig
from submerge_client.config.tomlfile import read
from submerge_lab.plants.room import DAY, MOTES, QUANTITIES, Room
from submerge_lab.replay.into import send
from submerge_lab.replay.stacked import Stacked, stacked

RANK, CLIENTS, HIDDEN, LEFT_OUT = 10, 3, 0.02, 0.3
WHO = f"fleet of {CLIENTS}"
ROOT = """node = "root"
store = "{folder}/root.db"
status.address = ""
timing.model_every_s = 1
[listen.grpc]
address = "127.0.0.1:0"
insecure = true
[groups.log]
schema = {{ channels = {channels}, scaling = "{scaling}", center = "fleet" }}
summary.rank = {rank}
"""


def written(path: Path, rows: Array, rng: np.random.Generator, left_out: float) -> None:
    """Write rows (n, motes x quantities) as the log has them, some lines left out."""
    with path.open("w") as file:
        for epoch, row in enumerate(rows.reshape(len(rows), MOTES, len(QUANTITIES)), 1):
            for mote, values in enumerate(row.tolist(), 1):
                if values[0] == values[0] and rng.random() >= left_out:
                    said = " ".join(f"{value:.6g}" for value in values)
                    file.write(f"2004-03-01 00:00:00.0 {epoch} {mote} {said}\n")


def logs(folder: Path, days: float) -> dict[str, Stacked]:
    """Return the logs that are here, or what stands in."""
    motes = measure.DATA / "motes"
    raw = [path for path in (motes / "data.txt", motes / "data.txt.gz") if path.exists()]
    if raw:
        return {"Intel Lab log": stacked(raw, quantity="all")}
    measure.say(f"gaps: no {motes / 'data.txt'}: the generated room in place (set SUBMERGE_DATA)")
    rng, tables = np.random.default_rng(0), {}
    rows = np.concatenate(list(Room(seed=0, days=days, faults=()).stream(int(DAY))))
    for name, share in (("room", 0.0), ("room, 30 % of lines out", LEFT_OUT))[: 1 + (days >= 1)]:
        written(folder / "data.txt", rows, rng, share)
        tables[name] = stacked([folder / "data.txt"], quantity="all")
    return tables


def through_a_fleet(folder: Path, table: Stacked, scaling: str) -> tuple[dict[str, Any], Any]:
    """Send a table to a root of its own; return the replay's counts, and the root's model."""
    folder.mkdir()
    config = folder / "root.toml"
    channels = json.dumps(table.names)
    config.write_text(ROOT.format(folder=folder, channels=channels, scaling=scaling, rank=RANK))
    server, loop = server_of(read(config, AggregatorConfig, {})), asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_until_complete, args=(server.run(),))
    thread.start()
    try:
        while not server.ready:
            time.sleep(0.01)
        url = f"grpc://127.0.0.1:{server.downlinks[0].port}"
        given = {"group": "log", "insecure": True, "leaves": CLIENTS, "missing": "impute"}
        given |= {"rank": RANK, "center": "fleet"}
        given |= {"fleet_scaling": True} if scaling == "fleet" else {}
        counts = json.loads(send(url, table, given, None, as_json=True))
        while (model := server.worker.node.model("log")) is None or not _has(model, counts):
            time.sleep(0.1)
        return counts, model
    finally:
        loop.call_soon_threadsafe(server.stop)
        thread.join()


def _has(model: Any, counts: dict[str, Any]) -> bool:
    return model.counts.learnt + model.counts.withheld >= counts["rows"]


def explained(schema: Schema, summary: Any, seen: Array, rows: Array) -> Array:
    """Return the share of the hidden values' variance, by column, that filling explains."""
    filled = fill(schema.scaled(seen), summary)[0]
    hidden = np.isnan(seen) & ~np.isnan(rows)
    off = np.where(hidden, filled - schema.scaled(rows), 0.0)
    from_mean = np.where(hidden, schema.scaled(rows) - np.nanmean(schema.scaled(seen), axis=0), 0.0)
    return 1.0 - np.square(off).sum(axis=0) / np.square(from_mean).sum(axis=0)


def one_engine(schema: Schema, seen: Array) -> Any:
    """Return what one engine learns of rows with gaps, half of whose values are there."""
    rows = schema.scaled(seen[np.isnan(seen).mean(axis=1) <= 0.5])
    engine = SAPCA(RANK, schema=Schema.anonymous(rows.shape[1]))
    return engine.partial_fit(np.nan_to_num(rows), gaps=Guesses(np.isnan(rows))).subspace


def measured(folder: Path, name: str, table: Stacked) -> list[tuple[object, ...]]:
    """Return a row for each scaling, of a fleet and of one engine."""
    rng, rows, found = np.random.default_rng(1), table.rows, []
    hidden = (rng.random(rows.shape) < HIDDEN) & ~np.isnan(rows)
    seen = np.where(hidden, np.nan, rows)
    kinds = [next((q for q in QUANTITIES if q in each), "light") for each in table.names]
    for scaling in ("fleet", "none"):
        given = Stacked(table.names, seen, ())
        counts, model = through_a_fleet(folder / f"{name} {scaling}", given, scaling)
        schema = Schema.parse(model.schema)
        summaries = {WHO: model.summary.parts[0], "one engine": None}
        for who, summary in summaries.items():
            fleet = summary is not None
            by = explained(schema, summary if fleet else one_engine(schema, seen), seen, rows)
            quantities = {q: [x for k, x in zip(kinds, by, strict=True) if k == q] for q in kinds}
            means = [float(np.mean(quantities[q])) if q in quantities else None for q in QUANTITIES]
            told = (counts["withheld"], counts["bytes"] / 1000) if fleet else (None, None)
            missing = float(np.isnan(seen).mean())
            found.append((name, f"{len(rows):,} x {rows.shape[1]}", missing, scaling, who))
            found[-1] += (*told, *means)
    return found


COLUMNS = {"log": "", "rows": "", "missing": ".1%", "scaling": "", "learnt by": ""}
COLUMNS |= {"rows withheld": ",d", "kB up": ",.0f"}


def figure(quick: bool) -> Figure:
    """Measure every log, with scaling and without."""
    rows: list[tuple[object, ...]] = []
    with TemporaryDirectory() as folder:
        tables = logs(Path(folder), 0.5 if quick else 1.0)
        if (path := place_of("Light", measure.DATA / "motes")) is not None:
            light = stacked([path])
            zeros = np.where(light.rows == 0, np.nan, light.rows)
            tables["Light, 0 is missing"] = Stacked(
                light.names, zeros[: 1000 if quick else None], ()
            )
        for name, table in measure.progress(list(tables.items()), "federated: gaps"):
            rows += measured(Path(folder), name, table)
    return Figure(
        "federated/gaps",
        "Grammenos et al., arXiv:1907.08059v1: section 5, future work",
        "A log with missing values through a fleet, with scaling and without.\n\n" + about(__doc__),
        ", ".join(tables) + ("" if "Intel Lab log" in tables else "; the raw log is not here"),
        (
            "core/submerge/pca",
            "core/submerge/client/incarnation.py",
            "lab/submerge_lab/replay/into.py",
        ),
        [],
        [Table("Share explained, by quantity", COLUMNS | dict.fromkeys(QUANTITIES, ".3f"), rows)],
        _verdict(rows),
    )


def _verdict(rows: list[tuple[Any, ...]]) -> str:
    def shown(scaling: str, quantity: str) -> str:
        at = -len(QUANTITIES) + QUANTITIES.index(quantity)
        of = [row[at] for row in rows if row[3:5] == (scaling, WHO) and row[-1] is not None]
        return " and ".join(f"{each:.3f}" for each in of)

    said = [
        f"{quantity} {shown('fleet', quantity)} ({shown('none', quantity)} without)"
        for quantity in QUANTITIES
    ]
    return (
        "the paper leaves it open. Here each node learns its expectation of a gap. Explained by the"
        f" fleet, with scaling: {', '.join(said)}. Without it light, which has the largest numbers,"
        " takes most of the directions; and with many gaps the fleet is then behind one engine."
    )


if __name__ == "__main__":
    command(figure)
