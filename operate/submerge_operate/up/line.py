"""Line: how a machine is, in one line for a person or in one of JSON, and when there is one."""

from __future__ import annotations

import asyncio
import json
import time
from collections import deque
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, Literal

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.root import SOONER
from submerge.client.alarms.limits import AlarmLimits
from submerge.client.monitor import NewestScore, newest_score
from submerge.client.node import ClientNode
from submerge.errors import SubmergeError
from submerge.protocol.alarm_status import MARKS, Alarm, and_more, excess, stays_at
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts
from submerge_aggregator.questions import survey
from submerge_client.agent import Agent, NewestValues
from submerge_client.alarms.event import facts, rounded
from submerge_client.config.sensor_kind import SensorKind
from submerge_client.logs import say
from submerge_client.trial import TAKEN
from submerge_files.console.units import ago, figure, name_text
from submerge_operate.up.config import BoxConfig

# What is read of it here are values that it replaces whole, so no lock is needed: a number may be
# a moment older than the one beside it.

Held = Callable[[AggregatorNode, Now], dict[str, Counts]]
"""A question to the root: what it holds of a node, by incarnation; sealed ones are under ""."""


@dataclass(frozen=True, slots=True)
class BoxState:
    rows: int  # read since the program began
    # readings of all its lives: learnt, and seen but not learnt
    learnt: int
    withheld: int
    # readings that measure the scale of the channels; None once it is settled
    measured: int | None = None
    ready_in_s: float = -1.0  # until scale or model are there, at the present rate; -1 if unknown
    # channels without a value, for which rows wait that would measure the scale
    waits_on: tuple[str, ...] = ()
    score: NewestScore | None = None  # None before the first row was scored
    # what limits wait for, in words; empty if they wait for time only, or are there
    waits_for: str = ""
    # whether limits are those of a first look: they do not keep the configured rate of alarms
    provisional: bool = False
    armed_in_s: float = -1.0  # time until they keep it; -1 if unknown
    alarms: tuple[Alarm, ...] = ()
    absent: tuple[str, ...] = ()  # channels that had no value in the rows before the line
    never: tuple[str, ...] = ()  # those of them that have had none since the program began
    quiet_s: float = 0.0  # for how long there was no row; 0 while that is usual
    advice: str = ""

    @property
    def open(self) -> tuple[Alarm, ...]:
        return tuple(each for each in self.alarms if each.is_open)


def has_started(client: ClientNode) -> bool:
    """Return whether a client has read what it keeps: before that there is nothing to say."""
    return hasattr(client, "current")


def held_of(group: str, name: str) -> Held:
    """Return the question of what a root holds of a node."""
    # Readings of an earlier schema count for nothing: those that it measured are counted by their
    # successor, and what was measured of other channels settles nothing.

    def question(node: AggregatorNode, now: Now) -> dict[str, Counts]:
        held: dict[str, Counts] = {}
        for view in survey.nodes(node, now, group, name):
            for each in (sealed for sealed in view.sealed if sealed.schema == "current"):
                held[""] = held.get("", Counts()) + Counts(each.learnt, each.withheld)
            for row in (row for row in view.rows if row.schema == "current"):
                held[row.incarnation] = Counts(row.learnt, row.withheld)
        return held

    return question


def measured_of(client: ClientNode) -> int | None:
    """Return how many readings measure the scale; None once it is settled."""
    current = client.current
    if client.monitor is not None or current.learns:
        return None
    # Before its schema is settled the root holds everything under an earlier one.
    return client.finals.measured_by(current.fingerprint) + current.counts.learnt


def state_of(rows: int, client: ClientNode, held: dict[str, Counts]) -> BoxState:
    # `held` is what its root holds; of the running incarnation the client knows more.
    current, monitor = client.current, client.monitor
    total = current.counts
    for incarnation, counts in held.items():
        if incarnation != str(current.incarnation):
            total += counts
    learnt, withheld = total.learnt, total.withheld
    if monitor is None:
        return BoxState(rows, learnt, withheld, measured_of(client))
    detector, waiting = monitor.detector, monitor.waiting
    limits = AlarmLimits() if detector is None else detector.limits
    return BoxState(
        rows,
        learnt,
        withheld,
        score=newest_score(monitor),
        waits_for="" if waiting is None else waiting.words.replace("the group's", "its"),
        provisional=bool(limits.known) and not limits.promised,
        armed_in_s=limits.armed_in_s,
        alarms=monitor.alarms,
    )


Occasion = Literal["minute", "first scores", "alarm began", "alarm ended", "end"]
"""Why there is a line."""

MOST_NAMED = 2  # most channels that a line names
LEAST_SHARE = 0.01  # smaller shares of a limit have no figure


def text_of(
    state: BoxState, at: float, occasion: Occasion, *, units: Mapping[str, str], needed: int
) -> str:
    parts = [_rows(state, needed), *_missing(state)]
    if state.measured is None:
        parts.append(_score(state))
    elif occasion == "end":
        parts.append("the next start goes on from them")
    alarm = _alarms(state, at, occasion, units)
    parts.insert(0 if state.open else len(parts), alarm)
    return f"{_local(at)}  {'; '.join(parts)}"


def json_of(
    state: BoxState, at: float, occasion: Occasion, *, units: Mapping[str, str], needed: int
) -> str:
    score = state.score
    line: dict[str, Any] = {"at": round(at, 3), "why": occasion, "rows": state.rows}
    line |= {"learnt": state.learnt, "withheld": state.withheld}
    if state.measured is not None:
        line |= {"measured": state.measured, "of": needed, "ready_in_s": None}
        line |= {"waits_on": state.waits_on} if state.waits_on else {}
    if state.ready_in_s >= 0:
        line["ready_in_s"] = round(state.ready_in_s)
    if score is not None:
        line |= {"statistic": score.kind, "score": rounded(score.value)}
        line |= {} if score.share is None else {"share_of_limit": rounded(score.share)}
    told = {"waits_for": state.waits_for, "absent": state.absent, "never": state.never}
    line |= {name: value for name, value in told.items() if value}
    if state.quiet_s:
        line["quiet_s"] = round(state.quiet_s)
    line["provisional"] = state.provisional
    line["armed_in_s"] = None if state.armed_in_s < 0 else round(state.armed_in_s)
    line["alarms"] = [_alarm_fields(each, units) for each in state.open]
    return json.dumps(line, ensure_ascii=False)


def page_line(url: str, at: float, *, as_json: bool) -> str:
    if as_json:
        return json.dumps({"at": round(at, 3), "why": "page", "url": url})
    return f"{_local(at)}  page, by this link once within an hour: {url}"


def _missing(state: BoxState) -> Iterator[str]:
    """Yield what does not come from the sensor."""
    if state.quiet_s:
        yet = "" if state.rows else "yet, "
        advice = f" ({state.advice})" if state.advice else ""
        yield f"no row {yet}for {ago(state.quiet_s)}{advice}"
        return
    absent = [name for name in state.absent if name not in state.waits_on]
    for yet, of in ((" yet", state.never), ("", set(absent) - set(state.never))):
        names = [name for name in absent if name in of]
        if names:
            yield f"no value{yet} of {_some(names)}"


def _some(names: Sequence[str]) -> str:
    more = len(names) - MOST_NAMED
    return ", ".join(map(name_text, names[:MOST_NAMED])) + (
        f" (and {more} more)" if more > 0 else ""
    )


def _rows(state: BoxState, needed: int) -> str:
    text = f"{state.rows:,} {'row' if state.rows == 1 else 'rows'} read"
    if state.measured is not None:
        return f"{text}; measuring the scale of each channel: {_measured(state, needed)}"
    withheld = f", {state.withheld:,} withheld" if state.withheld else ""
    return f"{text}, {state.learnt:,} learnt{withheld}"


def _measured(state: BoxState, needed: int) -> str:
    text = f"{min(state.measured or 0, needed):,} of {needed:,} rows"
    if state.waits_on and not state.quiet_s:
        verb = "has" if len(state.waits_on) == 1 else "have"
        yet = " yet" if set(state.waits_on) <= set(state.never) else ""
        return f"{text}, waiting for {_some(state.waits_on)}, which {verb} no value{yet}"
    return f"{text}, about {ago(state.ready_in_s)} more" if state.ready_in_s > 0 else text


def _score(state: BoxState) -> str:
    score = state.score
    if score is not None and score.share is not None:
        # 1e-05 says no more to a person than that it is small.
        shown = figure(score.share) if score.share >= LEAST_SHARE else f"below {LEAST_SHARE}"
        share = f"score {shown} of its limit"
        more = f", for {ago(state.armed_in_s)} more" if state.armed_in_s > 0 else ""
        return f"{share} (provisional{more})" if state.provisional else share
    value = "no score yet" if score is None else f"score {figure(score.value)}, no limits yet"
    soon = f"first scores in about {ago(state.ready_in_s)}" if state.ready_in_s > 0 else ""
    if soon or state.waits_for:
        return f"{value}: {soon or state.waits_for}"
    when = f"in about {ago(state.armed_in_s)}" if state.armed_in_s > 0 else "too few scores so far"
    return f"{value}: {when}"


def _alarms(state: BoxState, at: float, occasion: Occasion, units: Mapping[str, str]) -> str:
    if state.open:
        alarm, more = state.open[0], len(state.open) - 1
        kind = alarm.noun if alarm.is_quiet else alarm.noun.upper()
        since = _local(alarm.began)
        # Of today the time is enough.
        since = since.removeprefix(_local(at).partition(" ")[0]).lstrip()
        others = f" (and {more} more)" if more else ""
        return f"{kind} since {since}: {_channels(alarm, units)}{others}"
    if occasion == "alarm ended" and state.alarms:
        alarm = max(state.alarms, key=lambda each: each.ended)
        lasted = ago(max(0.0, alarm.ended - alarm.began))
        named = _named(replace(alarm, top=alarm.first or alarm.top))
        return f"{alarm.noun} over after {lasted}: {', '.join(map(name_text, named))}"
    return "no alarm"


def _channels(alarm: Alarm, units: Mapping[str, str]) -> str:
    by_name = {each.channel: each for each in alarm.deviations}
    deviations = [by_name[name] for name in _named(alarm) if name in by_name]
    if not deviations:
        named = _named(alarm)
        more = and_more(alarm.cause, dict(alarm.top), len(named))
        silent = " silent" if alarm.cause == "silent" else ""
        return ", ".join(map(name_text, named)) + more + silent
    if alarm.cause == "duty":
        first = deviations[0]
        value = _in_unit(first.value, units.get(first.channel, ""))
        state, times = stays_at(first.value, first.expected), excess(alarm.worst)
        names = ", also ".join(map(name_text, _named(alarm)))
        return f"{names} {state} at {value}, {times} times its longest run"
    stuck = "stuck at " if alarm.cause == "stuck" else ""
    # What is expected of a healthy channel follows the broken one beside it.
    shown = deviations if stuck else deviations[:1]
    word = "was" if alarm.cause == "jump" else "expected"
    said = [
        f"{name_text(each.channel)} {stuck}{_in_unit(each.value, units.get(each.channel, ''))}"
        f" ({word} {_in_unit(each.expected, units.get(each.channel, ''))})"
        for each in shown
    ]
    also = [
        f"{'or' if each.channel in alarm.twins else 'also'} {name_text(each.channel)}"
        for each in deviations[len(shown) :]
    ]
    return ", ".join(said + also)


def _named(alarm: Alarm) -> list[str]:
    """Return the channels most to blame; what was over its limit, where none is."""
    least = FAINT * alarm.top[0][1] if alarm.top else 0.0
    return [name for name, share in alarm.top[:MOST_NAMED] if share >= least] or [alarm.cause]


def _alarm_fields(alarm: Alarm, units: Mapping[str, str]) -> dict[str, Any]:
    channels = [d._asdict() | {"unit": units.get(d.channel, "")} for d in alarm.deviations]
    known = facts(alarm, "")
    shown = {name: known[name] for name in ("id", "began", "cause", "worst", *MARKS, "top")}
    return shown | {"channels": channels}


def _in_unit(value: float, unit: str) -> str:
    return f"{figure(value)} {name_text(unit)}".rstrip()


def _local(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


LEAST_MEASURED_S, POINTS = 5.0, 60
"""Seconds between two points, and how many are remembered: the rate is that of five minutes, or of
sixty rows where they come more seldom."""


class MeasuringPace:
    """The rate of measured rows; `period_s`: seconds between rows; 0 if unknown."""

    def __init__(self, period_s: float = 0.0) -> None:
        self._every = max(LEAST_MEASURED_S, period_s)
        self._points: deque[tuple[float, int]] = deque(maxlen=POINTS)

    def take(self, measured: int, now: float) -> None:
        """Take the number of rows so far, at a time on any steady clock."""
        if self._points and measured < self._points[-1][1]:
            self._points.clear()  # other channels are measured now
        if not self._points or now >= self._points[-1][0] + self._every:
            self._points.append((now, measured))

    def left_s(self, measured: int, needed: int, now: float) -> float:
        """Return the time until there are `needed` rows; -1 if none has come of late."""
        if measured >= needed:
            return 0.0
        if not self._points:
            return -1.0
        at, before = self._points[0]
        return (needed - measured) * (now - at) / (measured - before) if measured > before else -1.0


PERIODS, LEAST_S = 3.0, 30.0  # periods and seconds without a row that are nothing to speak of


class Arrivals:
    """What has come from a sensor since the line before.

    absent : Channels without a value in all rows between the last two calls of `mark`.
    never : Those of them that have had none since the start.
    """

    def __init__(self, names: Sequence[str], sensor: SensorKind, now: float) -> None:
        self._names = tuple(names)
        self._sensor = sensor
        self._usual_s = max(LEAST_S, PERIODS * sensor.every_s)
        self._rows = self._marked = 0
        self._at = now
        self.absent: tuple[str, ...] = ()
        self.never: tuple[str, ...] = ()

    def look(self, rows: int, now: float) -> None:
        if rows != self._rows:
            self._rows, self._at = rows, now

    def mark(self, rows: int, newest: NewestValues) -> None:
        """Take the newest values; without rows nothing is known."""
        if rows > self._marked:
            gone = np.flatnonzero(newest.at <= self._marked)
            self.absent = tuple(self._names[place] for place in gone)
            self.never = tuple(self._names[place] for place in gone if not newest.at[place])
            self._marked = rows

    def quiet_s(self, now: float) -> float:
        """Return for how long there was no row; 0 while that is usual."""
        passed = now - self._at
        return passed if passed > self._usual_s else 0.0

    def advice(self, counts: Mapping[str, int]) -> str:
        """Return what to look at when there was no row at all; first what came and was left out."""
        left_out = [f"{n} {what}" for what, n in counts.items() if n and what not in TAKEN]
        return "" if self._rows else "; ".join([*left_out, self._sensor.advice])


Ask = Callable[[Callable[[AggregatorNode, Now], Any]], Awaitable[Any]]  # asks the root's machine

FAINT = 0.1  # share of the blame, over the first channel's, from which another one is named

FIRST_S = 5.0  # until the first line
EVERY_S = 60.0  # between two lines, if nothing happens

BEREFT = (
    "what it has learnt and the limits of alarms begin again from what client.state holds; if"
    " root.db was moved, stop this program and put it back"
)

LOOK_S = 1.0  # between two looks at the client


class Telling:
    """Says how a machine is.

    bereft : The root's store is new, and the client is not: said once.
    """

    def __init__(
        self,
        config: BoxConfig,
        agent: Agent,
        ask: Ask,
        tell: Callable[[str], None],
        *,
        as_json: bool = False,
        bereft: bool = False,
    ) -> None:
        self._agent, self._ask, self._tell = agent, ask, tell
        names = [channel.name for channel in config.schema.sensed]
        self._arrivals = Arrivals(names, config.sensor, time.monotonic())
        self._question = held_of(config.group, config.node)
        units = {channel.name: channel.unit for channel in config.schema.sensed}
        self._given = config.schema.given
        sooner = SOONER if self._given else 1
        self._first = config.aggregator.plans[config.group].min_rows  # before its first model
        self._needed = config.aggregator.settings.scaling_rows // sooner
        self._line = partial(json_of if as_json else text_of, units=units, needed=self._needed)
        self._pace = MeasuringPace(config.sensor.every_s)
        self._fills = config.gaps == "fill"
        self._scored, self._bereft = False, bereft
        self._alarms: dict[str, bool] | None = None  # open or not, by name; None before any look

    async def run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + FIRST_S
        while True:
            await asyncio.sleep(LOOK_S)
            if not has_started(self._agent.node):
                continue
            self._arrivals.look(self._agent.rows, time.monotonic())
            measured, learnt = measured_of(self._agent.node), self._agent.node.current.counts.learnt
            self._pace.take(learnt if measured is None else measured, time.monotonic())
            occasion = self._news() or ("minute" if loop.time() >= due else None)
            if occasion == "minute":
                due = loop.time() + EVERY_S
            if occasion is not None:
                await self.write(occasion)

    async def write(self, occasion: Occasion) -> None:
        try:
            state, arrivals = await self._state(), self._arrivals
        except SubmergeError:
            return  # the store cannot be written: the root has said so
        if occasion == "minute":
            arrivals.mark(self._agent.rows, self._agent.newest)
        now = time.monotonic()
        state = replace(state, absent=arrivals.absent, never=arrivals.never)
        advice = arrivals.advice(self._agent.sensor.counts)
        state = replace(state, quiet_s=arrivals.quiet_s(now), advice=advice)
        if state.measured is not None:
            # A gap is filled with its channel's mean; one that has never come has none.
            waits_on = arrivals.never if self._fills else arrivals.absent
            waits_on = tuple(name for name in waits_on if name not in self._given)
            left_s = -1.0 if waits_on else self._pace.left_s(state.measured, self._needed, now)
            state = replace(state, ready_in_s=left_s, waits_on=waits_on)
        elif state.waits_for.endswith("first model"):
            learnt = self._agent.node.current.counts.learnt
            state = replace(state, ready_in_s=self._pace.left_s(learnt, self._first, now))
        if self._bereft:
            self._bereft = False
            known = state.learnt + state.withheld
            facts = {"readings_gone": max(0, self._agent.node.lifetime - known), "kept": known}
            say("root.db was not there", level="warning", **facts, meaning=BEREFT)
        self._tell(self._line(state, time.time(), occasion))

    async def _state(self) -> BoxState:
        """Return how it is; asked again where an incarnation ended in between."""
        while True:
            before = self._agent.node.current.incarnation
            held = await self._ask(self._question)
            state = state_of(self._agent.rows, self._agent.node, held)
            if self._agent.node.current.incarnation == before:
                return state

    def _news(self) -> Occasion | None:
        """Return what has happened since the last look."""
        monitor = self._agent.node.monitor
        if monitor is None:
            return None
        alarms = {each.name: each.is_open for each in monitor.alarms}
        # What was there at the start is none.
        before = alarms if self._alarms is None else self._alarms
        is_first = not self._scored and newest_score(monitor) is not None
        self._alarms, self._scored = alarms, self._scored or is_first
        if any(is_open and not before.get(name) for name, is_open in alarms.items()):
            return "alarm began"
        ended = {name for name, is_open in before.items() if is_open} | (alarms.keys() - before)
        if any(not alarms.get(name) for name in ended):
            return "alarm ended"
        return "first scores" if is_first else None
