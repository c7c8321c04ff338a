"""try_out(): reads a client's sensors for ten seconds and shows what it would learn."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Sequence
from typing import Any, NamedTuple

import click
import numpy as np

from submerge import Array, Schema
from submerge.pca.budget import low_rank_bytes
from submerge.protocol.machine import Level
from submerge.protocol.summaries import Method
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.summary import LearntSummary
from submerge_client.sensors import open_sensor
from submerge_client.sensors.gather import Lags

TRIAL_S = 10.0  # how long the sensor is read
SHOWN = 5  # rows to show
ENOUGH_ROWS = 100_000  # enough rows of a file that is replayed as fast as possible
TAKEN = {"taken", "rows", "passes"}  # counts of sensors that are not about readings left out
MOST_UNKNOWN = 10  # unknown names to show


class Listened(NamedTuple):
    """What a sensor gave, until it `ended`, `unknown` names, and the `problems` it warned of."""

    rows: Array
    counts: dict[str, int]
    seconds: float
    ended: bool = False
    unknown: tuple[str, ...] = ()
    problems: tuple[str, ...] = ()


def try_out(config: ClientConfig, *, seconds: float = TRIAL_S) -> None:
    """Read the sensor; print rows, scaling, memory, size of a report. Without a row, status 1."""
    click.echo(f"listening to the sensors for {seconds:g} s ...", err=True)
    got = listen(config, seconds=seconds)
    for line in trial_lines(config, got):
        click.echo(line)
    if not len(got.rows):
        sys.exit(1)


def listen(config: ClientConfig, *, seconds: float, enough: int = ENOUGH_ROWS) -> Listened:
    """Read the sensor for at most `seconds`, or until there are enough rows."""
    names = [channel.name for channel in config.schema.sensed]
    unknown: list[str] = []
    problems: dict[str, None] = {}

    def note(what: str, /, *, level: Level = "info", **facts: object) -> None:
        if level == "warning" and len(problems) < MOST_UNKNOWN:
            said = ", ".join(f"{name} {fact}" for name, fact in facts.items())
            problems[f"{what}: {said}"] = None
        if what.startswith("no channel") and len(unknown) < MOST_UNKNOWN:
            said = str(facts.get("names", facts.get("topic", "")))
            unknown.extend(name for name in said.split(", ") if name not in {"", "…"})

    sensor = open_sensor(config.sensor, names, note=note)
    blocks: list[Array] = []
    stop = threading.Event()
    failed: list[Exception] = []

    def hand(rows: Array, /, **_: Any) -> None:
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
    ended = not reading.is_alive()
    stop.set()
    reading.join(2.0)
    if failed:
        raise failed[0]
    rows = np.concatenate(blocks) if blocks else np.empty((0, len(names)))
    first, took_s = tuple(dict.fromkeys(unknown))[:MOST_UNKNOWN], time.monotonic() - began
    return Listened(rows, dict(sensor.counts), took_s, ended, first, tuple(problems))


def unknown_names(unknown: Sequence[str], channels: Sequence[str]) -> str:
    # Quoted as JSON: foreign names cannot control a terminal.
    named = ", ".join(json.dumps(name) for name in unknown)
    more = ", ..." if len(channels) > MOST_UNKNOWN else ""
    return f"unknown {named}; channels are {', '.join(channels[:MOST_UNKNOWN])}{more}"


def trial_lines(config: ClientConfig, got: Listened) -> list[str]:
    """Return the lines to print about what a sensor gave under a configuration."""
    rows, unknown, problems = got.rows, got.unknown, got.problems
    schema, numbers = config.built_schema, config.schema.width
    names = [channel.name for channel in config.schema.sensed]
    width = max(9, *(len(name) for name in names))
    lines = [f"{len(rows)} rows of {len(names)} channels in {got.seconds:.1f} s"]
    lines += [f"left out: {what} {n}" for what, n in got.counts.items() if n and what not in TAKEN]
    lines += [*([unknown_names(unknown, names)] if unknown else []), *problems]
    if not len(rows):
        hint = "is the source sending, and are its names those of the channels?"
        if config.sensor.link is not None and not unknown:
            hint = "correct what is said above" if problems else config.sensor.advice
        return [*lines, f"no rows: {hint}"]
    lines.append(" ".join(f"{name:>{width}}" for name in names))
    lines += [" ".join(f"{x:>{width}.4g}" for x in row) for row in rows[:SHOWN]]
    for i, channel in enumerate(config.schema.sensed):
        scaling = schema.scaling
        scaled = None if scaling is None else (scaling.offset[i], scaling.scale[i])
        lines.append(_line_of(channel.name, channel.unit, rows[:, i], scaled))
    embedded = Lags(config.schema.lags, len(names)).embed(rows)
    when, learnt = config.settings.learn_when, len(embedded)
    if when is not None and len(embedded):
        learnt = int(when.holds(embedded).sum())
        message = "" if learnt else "; nothing is learnt or scored"
        lines.append(f"[learn] when = {when}: true in {learnt} of {len(embedded)} vectors{message}")
    ranks = f"rank {config.summary.most} + {config.summary.oversample}"
    of_features = ""
    if not schema.linear:
        linear = config.summaries.linear_kept(numbers)
        of_features = f"; {schema.dim} features of each, {ranks}"
        ranks = f"{linear} directions of them"
    lines.append(
        f"learnt: {learnt} vectors of {numbers} dimensions"
        f" ({len(names)} channels x {config.schema.lags} lags), {ranks}{of_features}"
    )
    lines += [_memory_line(config.summary, schema)] if schema.linear else []
    report, every = config.largest_report, config.timing.report_every_s
    lines.append(
        f"a report has at most {report} bytes, one every {every:g} s:"
        f" {report * 86400 / every / 1e6:.3g} MB a day at most; the limit is"
        f" {config.uplink.limit} bytes"
    )
    return [*lines, "nothing was sent"]


def _memory_line(summary: LearntSummary, schema: Schema) -> str:
    engine = summary.summaries.engine(schema)
    most = (engine.most_bytes or 0) / 1e6
    if engine.rule.adaptive:
        most = low_rank_bytes(schema.dim, summary.kept, engine.block_size) / 1e6
    # MB, as the setting has it; `g` alone writes 170 as 1.7e+02.
    shown = f"{most:.2g}" if most < 10 else f"{most:.0f}"
    return f"learning takes at most {shown} MB: {Method.of(engine).algorithm}"


def _line_of(name: str, unit: str, column: Array, scaled: tuple[float, float] | None) -> str:
    """Return a line about one channel (n,); `scaled`: its offset and scale."""
    known = column[~np.isnan(column)]
    if not len(known):
        return f"{name}: only gaps"
    with np.errstate(over="ignore", invalid="ignore"):  # a wild number is shown, without warning
        mean, deviation = known.mean(), known.std()
    line = f"{name}: mean {mean:.4g}{f' {unit}' if unit else ''}, deviation {deviation:.4g}"
    gaps = len(column) - len(known)
    line += f", {gaps} gaps" if gaps else ""
    line += ", constant" if deviation == 0 else ""
    if scaled is not None:
        offset, scale = scaled
        line += f"; scaled: mean {(mean - offset) / scale:.3g}, deviation {deviation / scale:.3g}"
    return line
