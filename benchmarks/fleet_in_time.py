"""A fleet of real machines in virtual time: what the alarms' benchmark drives, an hour a step.

Nothing is lost on the way here, nobody dies, and no clock lies: other tests do that. A node reads
an hour's worth of its plant's rows at a time, and reports; the root makes a model every hour.
"""

import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any
from unittest import mock

import click
import numpy as np

from plants.plant import Plant
from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.client.alarms.detect import detect
from submerge.client.alarms.detector import AlarmDetector
from submerge.client.monitor import NodeMonitor
from submerge.client.node import ClientNode
from submerge.judge.decision import Decision
from submerge.protocol.alarm_status import Alarm, AlarmStatus
from submerge.protocol.machine import (
    Alarmed,
    Event,
    Now,
    Publish,
    Reading,
    Received,
    Scored,
    Send,
    Start,
    Tick,
)
from submerge.protocol.messages import Model
from submerge.protocol.settings import AggregatorSettings, AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces

EPOCH = 1_700_000_000.0
GROUP, ROOT = "plants", "root"
HOUR_S = 3600.0


@dataclass
class Member:
    """One node, and what was seen of it.

    alarms : by number, as last told
    first_top : the channels that each of them named at once
    armed : hours, by number, in which it watched by final limits
    provisional : by such hours with provisional limits, rows in which these raise one false alarm
    scored : rows of the hour with their scores
    """

    name: str
    node: ClientNode
    alarms: dict[int, Alarm] = field(default_factory=dict)
    first_top: dict[int, tuple[str, ...]] = field(default_factory=dict)
    armed: set[int] = field(default_factory=set)
    provisional: dict[int, float] = field(default_factory=dict)
    scored: list[Scored] = field(default_factory=list)

    @property
    def detector(self) -> AlarmDetector | None:
        """Its detector; None while there is none."""
        monitor = self.node._ingest.monitor
        return None if monitor is None else monitor.detector

    def by_limits(self) -> tuple[list[Alarm], list[Alarm]]:
        """Return alarms as they began, by final limits and by provisional ones."""
        alarms = sorted(self.alarms.values(), key=lambda alarm: alarm.began)
        early = [alarm for alarm in alarms if getattr(alarm, "provisional", False)]
        return [alarm for alarm in alarms if alarm not in early], early

    @property
    def is_open(self) -> bool:
        """Whether an alarm is."""
        return self.detector is not None and self.detector.log.open is not None


class Fleet:
    """A root and its clients, and the time.

    An `hour` here lasts `step_s`: rows that are handed over at once, a report and a model.
    """

    def __init__(
        self,
        plant: Plant,
        alarms: AlarmSettings,
        *,
        seed: int = 0,
        learns_scaling: bool = False,
        robust: bool = False,
        rows: Callable | None = None,
        step_s: float = HOUR_S,
        min_rows: int = 1,
    ) -> None:
        schema: Schema = plant.schema
        if learns_scaling:
            schema = replace(schema, scaling=None)
        self.plant, self._rows = plant, rows or plant.rows
        self.alarms = replace(alarms, period_s=plant.period_s)
        self.hour, self.step_s = 0, step_s
        self.first_model: int | None = None
        self._learns_scaling = learns_scaling
        self._schema, self._summaries = schema, Subspaces(8, rank_max=16)
        seeds = iter(np.random.SeedSequence(seed).spawn(plant.nodes + 1))
        settings = AggregatorSettings(
            ROOT, None, report_every_s=step_s, model_every_s=step_s, seal_after_s=48 * step_s
        )
        plan = GroupPlan(
            self._summaries,
            schema,
            learns_scaling=learns_scaling,
            chooses_rank=True,
            robust=robust,
            min_rows=min_rows,
        )
        self.root = AggregatorNode(settings, {GROUP: plan}, np.random.default_rng(next(seeds)))
        self.members = [
            self._member(f"n{i:02}", np.random.default_rng(next(seeds))) for i in range(plant.nodes)
        ]
        self._by_name = {member.name: member for member in self.members}
        self._todo: deque[tuple[str, Event]] = deque([(ROOT, Start({}))])
        self._todo.extend((member.name, Start({})) for member in self.members)
        self._settle()

    def _member(self, name: str, rng: np.random.Generator) -> Member:
        settings = ClientSettings(
            name,
            GROUP,
            ROOT,
            learns_scaling=self._learns_scaling,
            report_every_s=0.7 * self.step_s,
            checkpoint_every_s=30 * 86400.0,
            min_rows=1,
            turned_by=180.0,
            fills_gaps=True,
            alarms=self.alarms,
        )
        return Member(name, ClientNode(settings, self._schema, self._summaries, rng))

    @property
    def now(self) -> Now:
        """The end of the last hour that passed."""
        return Now(self.hour * self.step_s, EPOCH + self.hour * self.step_s)

    def row_at(self, wall: float) -> int:
        """Return which row was the newest at a time."""
        return round((wall - EPOCH) / self.plant.period_s)

    def bounds(self, hour: int) -> tuple[int, int]:
        """Return the rows of an hour."""
        first, last = (int(h * self.step_s / self.plant.period_s) for h in (hour, hour + 1))
        return min(first, self.plant.n_rows), min(last, self.plant.n_rows)

    @property
    def hours(self) -> int:
        """Of the whole run."""
        return int(self.plant.n_rows * self.plant.period_s / self.step_s)

    def passes(self, *, only: Sequence[int] | None = None) -> None:
        """Let an hour pass at all nodes, or at some."""
        start, stop = self.bounds(self.hour)
        self.hour += 1
        for i in range(len(self.members)) if only is None else only:
            member = self.members[i]
            member.scored.clear()
            if stop > start:
                self._todo.append((member.name, Reading(self._rows(i, start, stop))))
        for name in (*self._by_name, ROOT):
            self._todo.append((name, Tick()))
        self._settle()

    def _settle(self) -> None:
        """Hand over messages until nobody has anything to say."""
        now = self.now
        while True:
            while self._todo:
                name, event = self._todo.popleft()
                node = self.root if name == ROOT else self._by_name[name].node
                for effect in node.step(event, now):
                    self._do(name, effect)
            due = [
                name
                for name, node in [
                    (ROOT, self.root),
                    *((member.name, member.node) for member in self.members),
                ]
                if node.wakes_at <= now.steady
            ]
            if not due:
                return
            self._todo.extend((name, Tick()) for name in due)

    def _do(self, name: str, effect: object) -> None:
        match effect:
            case Send(to, message):
                if to == ROOT or to in self._by_name:
                    self._todo.append((to, Received(message)))
                self._see(name, getattr(message, "alarm_status", None))
            case Publish(message):
                # Before the first readings a root publishes that it has none.
                if self.first_model is None and isinstance(message, Model) and message.summary:
                    self.first_model = self.hour
                self._todo.extend((member, Received(message)) for member in self._by_name)
            case Alarmed(alarms):
                member = self._by_name[name]
                for alarm in alarms:
                    member.alarms[alarm.number] = alarm
                    member.first_top.setdefault(alarm.number, tuple(n for n, _ in alarm.top))
            case Scored():
                self._by_name[name].scored.append(effect)

    def _see(self, name: str, status: AlarmStatus | None) -> None:
        """Note by which limits a node watches."""
        if status is None or name not in self._by_name:
            return
        member, rows = self._by_name[name], getattr(status, "provisional_rows", 0.0)
        if rows:
            member.provisional[self.hour] = rows
        elif status.state != "learning":
            member.armed.add(self.hour)

    def run(self, hours: int | None = None, *, label: str = "") -> Iterator[int]:
        """Let hours pass, drawing a bar on stderr; yield after each."""
        wanted = range(self.hours - self.hour if hours is None else hours)
        with click.progressbar(wanted, label=f"{label:<28}", file=sys.stderr) as bar:
            for _ in bar:
                self.passes()
                yield self.hour

    def ends(self) -> None:
        """Take the alarms that are still open as they are now."""
        for member in self.members:
            if member.detector is not None:
                for alarm in member.detector.log.alarms:
                    member.alarms[alarm.number] = alarm


@contextmanager
def without_gate() -> Iterator[None]:
    """Have every node learn what it alarms at, as if there were no gate."""

    def learns(*judged: Any) -> tuple[AlarmDetector, Decision]:
        detector, decision = detect(*judged)
        log = replace(detector.log, frozen={})
        return replace(detector, log=log), Decision.learn(len(decision.withheld))

    with (
        mock.patch("submerge.client.monitor.detect", learns),
        mock.patch.object(NodeMonitor, "_hold", return_value=None),
    ):
        yield
