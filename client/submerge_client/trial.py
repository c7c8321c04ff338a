"""try_out(): what a client would learn, before it runs: ten seconds of its sensors, told.

Nothing is sent, and nothing is kept.
"""

from __future__ import annotations

import threading
import time
from typing import NamedTuple

import click
import numpy as np

from submerge import Array
from submerge_client.config import ClientConfig
from submerge_client.sensors import opened
from submerge_client.sensors.lags import Lags

TRIAL_S = 10.0
"""How long it listens."""

SHOWN = 5
"""Rows to show."""

ENOUGH_ROWS = 100_000
"""A file that is replayed as fast as possible has shown enough."""

TAKEN = {"taken", "rows", "passes"}
"""What sensors count that is not left out."""

NARROW = 12
"""With fewer dimensions there is little for a subspace to be narrower than."""


class Listened(NamedTuple):
    """What a sensor gave.

    rows : (n, channels)
    counts : what it left out, by kind
    """

    rows: Array
    counts: dict[str, int]
    seconds: float


def try_out(config: ClientConfig, *, seconds: float = TRIAL_S) -> None:
    """Read the sensor for a while; print aligned rows, scaling, and what a report weighs."""
    click.echo(f"listening to the sensors for {seconds:g} s ...", err=True)
    heard = listened(config, seconds=seconds)
    for line in told(config, heard.rows, heard.seconds, heard.counts):
        click.echo(line)


def listened(config: ClientConfig, *, seconds: float, enough: int = ENOUGH_ROWS) -> Listened:
    """Read the sensor, no longer than so many seconds, until there are enough rows."""
    names = [channel.name for channel in config.schema.sensed]
    sensor = opened(config.sensor, names)
    blocks: list[Array] = []
    stop = threading.Event()
    failed: list[Exception] = []

    def hand(rows: Array) -> None:
        blocks.append(rows)
        if sum(len(block) for block in blocks) >= enough:
            stop.set()

    def read() -> None:
        try:
            sensor.read(hand, stop)
        except Exception as error:
            failed.append(error)

    began = time.monotonic()
    reading = threading.Thread(target=read, daemon=True)
    reading.start()
    reading.join(seconds)
    stop.set()
    reading.join(2.0)
    if failed:
        raise failed[0]
    rows = np.concatenate(blocks) if blocks else np.empty((0, len(names)))
    return Listened(rows, dict(sensor.counts), time.monotonic() - began)


def told(config: ClientConfig, rows: Array, seconds: float, counts: dict[str, int]) -> list[str]:
    """Return what rows (n, channels) say about a configuration, a line each."""
    schema, numbers = config.built_schema, config.schema.width
    names = [channel.name for channel in config.schema.sensed]
    units = [channel.unit for channel in config.schema.sensed]
    width = max(9, *(len(name) for name in names))
    lines = [f"{len(rows)} rows of {len(names)} channels in {seconds:.1f} s"]
    lines += [f"left out: {what} {n}" for what, n in counts.items() if n and what not in TAKEN]
    if not len(rows):
        return [*lines, "no rows: is the source sending, and are its names those of the channels?"]
    lines.append(" ".join(f"{name:>{width}}" for name in names))
    lines += [" ".join(f"{x:>{width}.4g}" for x in row) for row in rows[:SHOWN]]
    known = ~np.isnan(rows)
    for i, name in enumerate(names):
        column = rows[known[:, i], i]
        if not len(column):
            lines.append(f"{name}: only gaps")
            continue
        unit = f" {units[i]}" if units[i] else ""
        with np.errstate(over="ignore", invalid="ignore"):  # a wild number is shown, not warned of
            said = f"{name}: mean {column.mean():.4g}{unit}, deviation {column.std():.4g}"
        gaps = len(rows) - len(column)
        said += f", {gaps} gaps" if gaps else ""
        said += ", constant" if column.std() == 0 else ""
        if schema.scaling is not None:
            offset, scale = schema.scaling.offset[i], schema.scaling.scale[i]
            said += f"; scaled: mean {(column.mean() - offset) / scale:.3g},"
            said += f" deviation {column.std() / scale:.3g}"
        lines.append(said)
    embedded = Lags(config.schema.lags, len(names)).embed(rows)
    ranks = f"rank {config.summary.rank} + {config.summary.oversample}"
    of_features = ""
    if not schema.linear:
        linear = config.summaries.linear_kept(numbers)
        of_features = f"; {schema.dim} features of each, {ranks}"
        ranks = f"{linear} directions of them"
    lines.append(
        f"learnt: {len(embedded)} vectors of {numbers} dimensions"
        f" ({len(names)} channels x {config.schema.lags} lags), {ranks}{of_features}"
    )
    if numbers < NARROW and schema.linear:
        lags = -(-NARROW * 2 // len(names))
        lines.append(
            f"few dimensions: a subspace has little to find in {numbers}; with [schema]"
            f" lags = {lags} it sees how channels move over time"
        )
    report, every = config.largest_report, config.timing.report_every_s
    lines.append(
        f"a report has at most {report} bytes, one every {every:g} s:"
        f" {report * 86400 / every / 1e6:.3g} MB a day at most; the limit is"
        f" {config.uplink.limit} bytes"
    )
    return [*lines, "nothing was sent"]
