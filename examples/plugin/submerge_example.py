"""A kind of sensor, numbers in files; a sink of alarms, a folder with a file for each event; and a
language of exports, a page of text.
"""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from submerge_bridges.export.recipe import ExportOptions, ExportWriter, Recipe, about_lines
from submerge_client.alarms.journal import Journal
from submerge_client.alarms.ndjson import LineSink
from submerge_client.config.alarms import SinkKind
from submerge_client.config.sections import Seconds
from submerge_client.config.sensor_kind import SensorKind
from submerge_client.sensors.gather import Hand
from submerge_client.sensors.tally import ProblemTally, SensorLog


class NumbersSensor(SensorKind, frozen=True, kw_only=True, tag_field="kind", tag="numbers"):
    """Files with a number in each, as in /sys/class/hwmon: one for each channel, of its name."""

    folder: Path
    period_s: Seconds = 10.0

    def open(
        self, channels: Sequence[str], *, note: SensorLog, gather_s: float = 0.0
    ) -> NumberFiles:
        return NumberFiles([self.folder / name for name in channels], self.period_s, note)

    @property
    def advice(self) -> str:
        return f"is there a file for each channel in {self.folder}?"


class NumberFiles:
    """Yields a row every `period_s`; what cannot be read is a gap."""

    def __init__(self, paths: Sequence[Path], period_s: float, note: SensorLog) -> None:
        self._paths, self._period_s = paths, period_s
        self._tally = ProblemTally(note, "missing")
        self.counts = self._tally.counts

    def read(self, hand: Hand, stop: threading.Event) -> None:
        while not stop.wait(self._period_s):
            hand(np.array([[self._number(path) for path in self._paths]]))

    def _number(self, path: Path) -> float:
        try:
            return float(path.read_text())
        except (OSError, ValueError) as error:
            self._tally.add("missing", "no number", path=str(path), why=str(error))
            return math.nan


class FolderSink(SinkKind, frozen=True, kw_only=True, tag_field="kind", tag="folder"):
    """A folder that gets a file for each start and each end of an alarm."""

    path: Path

    def open(self, journal: Journal, *, name: str, group: str) -> LineSink:
        return LineSink(EventFolder(self.path), journal, name=name, group=group)


class EventFolder:
    """Takes events as lines of JSON, each once: it also knows those before a restart."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def read(self) -> set[tuple[str, str]]:
        stems = [path.stem.rpartition(".") for path in self._path.glob("*.json")]
        return {(name, event) for name, _, event in stems}

    def write(self, line: bytes) -> None:
        facts = json.loads(line)
        (self._path / f"{facts['id']}.{facts['event']}.json").write_bytes(line)

    def close(self) -> None:
        pass


def text(recipe: Recipe, _: ExportOptions) -> bytes:
    """Return what the model expects of each channel, for a person."""
    mean = recipe.mean * recipe.scale + recipe.offset
    channels = zip(recipe.channels, mean, recipe.units, strict=True)
    expected = [f"{name} is about {value:.4g} {unit}".rstrip() for name, value, unit in channels]
    return "".join(f"{line}\n" for line in (*about_lines(recipe), *expected)).encode()


TEXT = ExportWriter(text)
