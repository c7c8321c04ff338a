"""The detector: an alarm begins once, is over once, and keeps its rows from being learnt."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.client.alarms.detect import WILD, detect
from submerge.client.alarms.detector import AlarmDetector, ChannelState, DetectorState, Situation
from submerge.client.alarms.limits import AlarmLimits
from submerge.judge.prepare import RowClock
from submerge.protocol.alarm_changes import diff, is_urgent
from submerge.protocol.alarm_status import REMEMBERED, Alarm, AlarmStatus, Deviation
from submerge.protocol.machine import Now
from submerge.protocol.settings import AlarmSettings
from submerge.schema import Scaling
from submerge.stats.block_maxima import HOUR_S, BlockMaxima
from submerge.stats.duty import DutyCycles
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty, quantile
from submerge.stats.statistic import raised_by
from support import oracle
from support.scored import a_block, row_scores

EPOCH = 1_700_000_000.0
NAMES = ("flow", "temp")
SETTINGS = AlarmSettings(period_s=60.0)
DAYS = 200  # of 40 nodes' hours, all alike: their limit is known
LEVEL = 4.0
"""What every hour of the group came to: within two percent, the limit."""


def group(level: float = LEVEL, hours: int = DAYS * 24) -> BlockMaxima:
    """Return the peaks of a group of whose hours a third come to one level, and others to .4."""
    usual = np.where(np.arange(hours) % 3 == 0, level, 0.4 * level)
    sketch = QuantileSketch.of(usual, FINE)
    return BlockMaxima(sketch, sketch, QuantileSketch.of(np.array([]), FINE), longest=hours)


class Watch:
    """A detector, and the minutes that pass before it."""

    def __init__(
        self,
        settings: AlarmSettings = SETTINGS,
        kept: DetectorState | None = None,
        minute: int = 0,
        maxima: BlockMaxima | None = None,
        channels: ChannelState | None = None,
    ) -> None:
        self.detector = AlarmDetector.of("pump-1", settings, NAMES, kept, channels)
        self.hear(group() if maxima is None else maxima)
        self.minute, self.settings = minute, settings
        self.clock = RowClock(settings.period_s)

    @property
    def now(self) -> Now:
        return Now(60.0 * self.minute, EPOCH + 60.0 * self.minute)

    @property
    def open(self) -> Alarm | None:
        return self.detector.log.open

    @property
    def alarms(self) -> tuple[Alarm, ...]:
        return self.detector.log.alarms

    @property
    def limits(self) -> dict[str, float]:
        return dict(self.detector.limits.known)

    @property
    def maxima(self) -> BlockMaxima:
        return self.detector.hours.tally.maxima

    @property
    def withholds(self) -> bool:
        return self.detector.log.withholds

    def alarm_status(self) -> AlarmStatus:
        state = self.detector.state(ready=True, paused=False, stale=False)
        return self.detector.alarm_status(state, 0)

    def hear(self, maxima: BlockMaxima | None) -> None:
        self.detector = self.detector.with_maxima(maxima)

    def decide(self, number: int, *, accept: bool, at: float | None = None) -> bool:
        """Let a person judge an alarm; return whether that was news."""
        before = self.detector
        at = self.now.wall if at is None else at
        self.detector = before.decide(number, accept=accept, at=at)
        return self.detector is not before

    def see(self, *spe: float, t2=0.0, errors=None, rows=None, gaps=None, **situation: bool):
        """Let rows come; return which belong to an alarm.

        errors : (n, channels), how far each channel is from what the others say, if they say it
        rows : (n, channels), scaled
        gaps : (n, channels) of bool, what of them was filled
        """
        n = len(spe)
        self.minute += n
        self.clock, time = self.clock.read(self.now.steady)
        nothing = np.zeros((n, len(NAMES)))
        expected = None if errors is None else np.ones(len(NAMES))
        errors = nothing if errors is None else errors
        filled = None if gaps is None else np.array(gaps)
        block = a_block(nothing if rows is None else rows, filled, time)
        scores = row_scores(spe, n * [t2], errors, expected=expected)
        around = Situation(self.now, 7, **situation)
        self.detector, decision = detect(self.detector, block, scores, around)
        self.held = decision.withheld
        return decision.alarmed.tolist()

    def sticks(self, *stuck: int) -> None:
        """Have channels be stuck as the next rows come, which say nothing else."""
        flags = np.isin(np.arange(len(NAMES)), stuck)
        channels = self.detector.channels
        habits = channels.habits._replace(stuck=flags)
        self.detector = replace(self.detector, channels=replace(channels, habits=habits))

    def minds(self, *rows: float) -> list[bool]:
        """Let rows come in which the others say what each channel should be."""
        return self.see(*rows, errors=np.zeros((len(rows), len(NAMES))))

    def restarted(self) -> Watch:
        """Kill the process, and start another from what was kept."""
        channels = replace(self.detector.channels, gathered=(), waiting=0)
        return Watch(self.settings, self.detector.kept, self.minute, channels=channels)


def raised(**settings: float) -> Watch:
    """Return a watch with an alarm that has just been raised."""
    watch = Watch(replace(SETTINGS, **settings))
    watch.see(*8 * [9.0])
    assert watch.open is not None
    return watch


LOUD, QUIET = st.just(9.0), st.just(1.0)


@given(
    st.lists(LOUD | QUIET | st.just(3.5), min_size=1, max_size=120),
    st.lists(st.integers(1, 40), min_size=1, max_size=20),
    st.integers(1, 6),
    st.integers(0, 4),
)
def test_rows_of_an_alarm_are_those_of_the_rule(spe, cuts, after, more):
    """Row by row, whatever calls the rows came in."""
    watch = Watch(replace(SETTINGS, after=after, of=after + more))
    limits = dict(watch.limits)
    found, first = [], 0
    for cut in [*cuts, len(spe)]:
        if part := spe[first : first + cut]:
            found += watch.see(*part)
        first += cut

    rows = [{"spe": value, "t2": 0.0} for value in spe]
    expected = oracle.watched(rows, limits, after=after, of=after + more)
    assert expected == found[: len(spe)]


def test_an_alarm_says_when_by_what_and_how_bad():
    """It begins with the row that fills the rule, and its worst row is remembered."""
    watch = Watch()
    watch.see(*10 * [1.0], *6 * [8.0], 40.0, 8.0)
    alarm = watch.open
    limit = watch.limits["spe"]

    # Rows 11 to 15 are over: the fifth of them raises it.
    assert ("pump-1", EPOCH + 60.0 * 15, 0.0, "spe", 7) == (
        *(alarm.node, alarm.began, alarm.ended),
        *(alarm.cause, alarm.version),
    )
    assert (pytest.approx(40.0 / limit), EPOCH + 60.0 * 17) == (alarm.worst, alarm.peaked)
    assert f"pump-1-{int(alarm.began * 1000):x}" == alarm.name
    assert 4 == alarm.withheld


def test_it_is_over_once_it_is_calm():
    """Not just below the limit, and not for a moment."""
    watch = raised()
    limit = watch.limits["spe"]
    watch.see(*100 * [0.9 * limit])
    assert watch.open is not None
    watch.see(*20 * [0.1])
    assert watch.open is not None
    watch.see(*20 * [0.1])

    assert watch.open is None
    (alarm,) = watch.alarms
    assert alarm.began < alarm.ended <= watch.now.wall


def test_before_there_is_a_limit_there_is_no_alarm_but_a_provisional_one():
    """Too short a time, too few hours, or nothing heard: it says how long that will be."""
    maxima = [None, group(hours=71), BlockMaxima(*3 * [QuantileSketch.of(np.array([]), FINE)])]
    waits = []
    for each in maxima:
        watch = Watch()
        watch.hear(each)
        # The hours of a group that is too young give it provisional limits.
        early = bool(watch.detector.limits.known)
        assert early is any(watch.see(*20 * [math.inf]))
        assert all(alarm.provisional for alarm in watch.alarms)
        state = watch.detector.state(ready=True, paused=False, stale=False)
        waits.append(watch.alarm_status().armed_in_s)
        assert "learning" == state

    assert [95 * HOUR_S, HOUR_S, 95 * HOUR_S] == waits


def test_states_go_before_one_another():
    """An alarm before all; then what an operator said; then whether there is a limit."""
    watch, alarmed, unarmed = Watch(), raised(), Watch()
    unarmed.hear(None)

    def reported(watch: Watch, **facts: bool) -> str:
        return watch.detector.state(**{"ready": True, "paused": False, "stale": False, **facts})

    assert "armed" == reported(watch)
    assert "stale" == reported(watch, stale=True)
    assert "paused" == reported(watch, stale=True, paused=True)
    assert "learning" == reported(watch, stale=True, ready=False)
    assert "learning" == reported(unarmed)
    assert "alarm" == reported(alarmed, paused=True)


def test_a_young_mean_bears_more():
    """Until it has seen a day, limits are doubled, and T2 is not watched."""
    young, old = Watch(), Watch()
    assert [False] * 8 == young.see(*8 * [1.9 * LEVEL], t2=99.0, settled=False)
    assert any(old.see(*8 * [1.9 * LEVEL]))
    assert any(old.restarted().see(*8 * [0.0], t2=99.0))


def test_rows_are_withheld_for_a_day():
    """Then they are learnt again, and the alarm is held to the limits of that moment."""
    watch = raised(max_withheld_s=3600.0)
    watch.see(*40 * [9.0])
    assert watch.withholds
    watch.see(*40 * [9.0])
    assert not watch.withholds

    watch.hear(group(level=100.0))  # as if the group had learnt what is wrong
    watch.see(*100 * [9.0])
    assert watch.open is not None
    # Also after a restart.
    watch = watch.restarted()
    watch.hear(group(level=100.0))
    watch.see(*100 * [9.0])
    assert 1 == len(watch.alarms)
    assert watch.open is not None
    watch.see(*40 * [0.1])
    assert watch.open is None


def test_a_fault_is_never_learnt():
    """Once a person has rejected what it says, its rows are withheld for as long as it lasts."""
    watch = raised(max_withheld_s=3600.0)
    number = watch.open.number

    assert watch.decide(number, accept=False)
    assert not watch.decide(number, accept=False)
    watch.see(*1000 * [9.0])
    assert watch.held.all()
    assert watch.withholds
    assert (1, 1) == (
        watch.alarm_status().raised,
        watch.alarm_status().confirmed,
    )


def test_what_is_accepted_is_borne_until_it_has_gone():
    """The alarm is over at once; scores as high raise no other, and later ones count again."""
    watch = raised()
    number = watch.open.number
    assert watch.decide(number, accept=True)
    assert watch.open is None
    assert not any(watch.see(*600 * [9.0]))
    # It has been learnt: scores come down, and with them what is borne.
    watch.see(*300 * [0.5])
    assert any(watch.see(*8 * [9.0]))
    assert "accepted" == watch.alarms[1].verdict


def test_a_verdict_on_what_is_over_is_remembered():
    """It changes what is counted, and nothing else; of an alarm that is unknown it is no news."""
    watch = raised()
    number = watch.open.number
    watch.see(*60 * [0.1])

    assert watch.decide(number, accept=False, at=0.0)
    assert "rejected" == watch.alarms[0].verdict
    assert watch.decide(number, accept=True, at=0.0)
    assert 0 == watch.alarm_status().confirmed
    assert not watch.decide(number + 1, accept=True, at=0.0)


@pytest.mark.parametrize("rows", [0, 1, 3, 30])
def test_a_restart_neither_raises_nor_ends_it(rows):
    """The alarm that was open is the same; nothing but calm rows end it."""
    watch = raised()
    number = watch.open.number
    for _ in range(3):
        watch = watch.restarted()
        watch.see(*rows * [9.0]) if rows else None
    watch.see(*4 * [9.0])

    assert [number] == [alarm.number for alarm in watch.alarms]
    assert watch.open is not None
    watch = watch.restarted()
    watch.see(*64 * [0.1])
    assert [number] == [alarm.number for alarm in watch.alarms]
    assert watch.open is None
    assert 1 == watch.restarted().alarm_status().raised


@pytest.mark.parametrize("by_factors", [False, True])
def test_what_is_accepted_after_a_restart_is_not_raised_again(by_factors):
    """Rows from before it are unknown: they keep an alarm open, and raise none."""
    watch = Distances(maxima=by_distance()) if by_factors else Watch()
    watch.see(*20 * [9.0])
    watch = watch.restarted()
    watch.see(1.0)
    assert watch.decide(watch.open.number, accept=True)

    assert not any(watch.see(*30 * [1.0]))
    assert 1 == watch.detector.log.raised


def test_an_alarm_by_rows_before_its_block_says_no_value():
    """Limits fell: the rows that are over them have gone, and the block's own are as they were."""
    watch, off = Watch(maxima=group(100 * LEVEL)), np.array(5 * [[3.0, 0.0]])
    watch.see(*5 * [9.0], errors=off, rows=np.full((5, 2), 7.0))
    watch.hear(group())
    watch.see(1.0, 1.0, errors=np.zeros((2, 2)), rows=np.ones((2, 2)))

    assert "flow" == watch.open.top[0][0]
    assert () == watch.open.deviations


def test_alarms_have_names_of_their_own():
    """Also where a clock stands still, or is set back; the last eight that are over are told."""
    watch = Watch()
    for _ in range(12):
        watch.minute = 0
        watch.see(*8 * [9.0])
        watch.minute = 0
        watch.see(*60 * [0.1])

    numbers = [alarm.number for alarm in watch.alarms]
    assert numbers == sorted(set(numbers), reverse=True)
    assert REMEMBERED + 1 == len(numbers)


def test_the_guiltiest_are_named():
    """By their shares over the rows of the alarm; those without blame are not."""
    watch = raised()
    watch.see(9.0, errors=[[0.0, 1.0]])
    assert (("temp", 1.0),) == watch.open.top
    for _ in range(100):
        watch.see(9.0, errors=[[0.75**0.5, 0.25**0.5]])
    (first, share), (second, _) = watch.open.top
    assert ("flow", "temp") == (first, second)
    assert 0.6 < share < 0.75


FLOW, TEMP = [1.0, 0.0], [0.0, 1.0]


@pytest.mark.parametrize("cut", [1, 3, 7, 60])
def test_an_alarm_within_one_block_names_its_channels(cut):
    """It begins and ends within sixty rows: the rows that raise it are judged, as all of it."""
    watch = Watch()
    errors = np.array(2 * [TEMP] + 8 * [FLOW] + 50 * [TEMP])
    spe = [*2 * [1.0], *8 * [9.0], *50 * [0.1]]
    for first in range(0, 60, cut):
        part = slice(first, first + cut)
        watch.see(*spe[part], errors=errors[part], rows=3 * errors[part])
    (alarm,) = watch.alarms

    assert not alarm.is_open
    assert (("flow", 1.0),) == alarm.first == alarm.top
    assert (Deviation("flow", 3.0, 2.0),) == alarm.deviations


def test_alarms_of_one_block_name_their_own_channels():
    """Each is blamed by its rows alone, the one that is over before the other begins."""
    watch = Watch()
    errors = np.array(8 * [FLOW] + 52 * [FLOW] + 8 * [TEMP] + 60 * [FLOW])
    spe = [*8 * [9.0], *52 * [0.1], *8 * [9.0], *60 * [0.1]]
    watch.see(*spe, errors=errors)

    assert [(("temp", 1.0),), (("flow", 1.0),)] == [alarm.top for alarm in watch.alarms]
    assert [False, False] == [alarm.is_open for alarm in watch.alarms]


@given(st.lists(st.integers(1, 40), max_size=12))
def test_the_onset_does_not_depend_on_the_cut(cuts):
    """The four rows before the one that raises it may have come in blocks before; `first` stays."""
    errors = np.array(20 * [TEMP] + 4 * [FLOW] + 60 * [TEMP])
    spe, watch, first = [*20 * [1.0], *64 * [9.0]], Watch(), 0
    for cut in [*cuts, len(spe)]:
        if len(part := spe[first : first + cut]):
            watch.see(*part, errors=errors[first : first + cut])
        first += cut

    assert (("flow", 0.8), ("temp", 0.2)) == watch.open.first
    assert "temp" == watch.open.top[0][0]


def test_values_are_said_in_their_units():
    """As the highest row over its limit has them, and what the others say that they should be."""
    watch = raised()
    watch.detector = replace(watch.detector, scaling=Scaling((100.0, 10.0), (5.0, 2.0)))
    watch.see(9.0, errors=[[0.0, 1.5]], rows=[[0.5, 4.0]])
    watch.see(1.0, errors=[[3.0, 0.0]], rows=[[9.0, 9.0]])  # below its limit: it says nothing

    (off,) = watch.open.deviations
    assert (Deviation("temp", 18.0, 15.0), 3.0) == (off, off.difference)


def test_what_fills_a_gap_is_no_value():
    """A channel that was not there is said without one."""
    watch = raised()
    watch.see(9.0, errors=[[1.0, 1.5]], rows=[[2.0, 4.0]], gaps=[[False, True]])

    assert {"flow", "temp"} == {channel for channel, _ in watch.open.top}
    assert (Deviation("flow", 2.0, 1.0),) == watch.open.deviations


SCORES = st.sampled_from([0.1, 3.5, 9.0, 12.0, 30.0])


@given(
    st.lists(st.tuples(SCORES, st.booleans()), min_size=1, max_size=100),
    st.lists(st.integers(1, 40), max_size=12),
)
def test_values_are_those_of_the_peak(rows, cuts):
    """For each channel that is blamed in the end, whatever calls the rows came in."""
    n = len(rows)
    errors = np.array([FLOW if flow else TEMP for _, flow in rows])
    values = np.arange(2.0 * n).reshape(n, 2)
    watch, first = Watch(), 0
    for cut in [*cuts, n]:
        part = slice(first, first + cut)
        if spe := [score for score, _ in rows[part]]:
            watch.see(*spe, errors=errors[part], rows=values[part])
        first += cut

    for alarm in watch.alarms:
        peak = round((alarm.peaked - EPOCH) / 60) - 1
        there = dict(
            zip(NAMES, zip(values[peak], values[peak] - errors[peak], strict=True), strict=True)
        )
        assert {name: there[name] for name, _ in alarm.top} == {
            each.channel: (each.value, each.expected) for each in alarm.deviations
        }


def test_after_a_restart_values_are_those_of_the_peak_before():
    """A channel that is blamed since then says none, until a row is higher."""
    watch = Watch()
    watch.see(*5 * [9.0], 20.0, 9.0, errors=7 * [FLOW], rows=[[i, i] for i in range(7)])
    peak = watch.open.deviations
    assert (Deviation("flow", 5.0, 4.0),) == peak

    watch = watch.restarted()
    watch.see(*4 * [9.0], errors=4 * [TEMP], rows=4 * [[7.0, 7.0]])
    assert {"flow", "temp"} == {name for name, _ in watch.open.top}
    assert peak == watch.open.deviations
    watch.see(30.0, errors=[TEMP], rows=[[8.0, 8.0]])
    assert {("flow", 8.0, 8.0), ("temp", 8.0, 7.0)} == set(watch.open.deviations)


def test_an_alarm_of_an_earlier_version_has_no_onset():
    """It was open when the program was replaced: what is to blame now was not there first."""
    watch = raised().restarted()
    watch.see(9.0, errors=[TEMP])

    assert ((), "temp") == (watch.open.first, watch.open.top[0][0])


def by_distance(level: float = LEVEL) -> BlockMaxima:
    """Return maxima of the moving average of distances."""
    maxima = group(level)
    return replace(maxima, ewma=maxima.spe)


class Distances(Watch):
    """A watch of a group whose model has factors."""

    def restarted(self) -> Distances:
        """Kill the process, and start another from what was kept."""
        return Distances(self.settings, self.detector.kept, self.minute, by_distance())

    def hear(self, maxima: BlockMaxima | None) -> None:
        maxima = by_distance() if maxima is None else maxima
        self.detector = self.detector.with_maxima(maxima, raised_by(factors=True))

    def see(self, *distances: float, **situation: bool):
        """Let rows come with such distances; return which belong to an alarm."""
        n = len(distances)
        self.minute += n
        self.clock, time = self.clock.read(self.now.steady)
        scores = row_scores(n * [99.0], n * [99.0], np.zeros((n, len(NAMES))))
        scores = replace(scores, even={**scores.even, "distance": np.array(distances)})
        block = a_block(np.zeros((n, len(NAMES))), time=time)
        self.detector, decision = detect(
            self.detector, block, scores, Situation(self.now, 7, **situation)
        )
        self.held, self.factors = decision.withheld, decision.factors
        return decision.alarmed.tolist()


@given(
    st.lists(st.floats(0.1, 20.0), min_size=1, max_size=120),
    st.lists(st.integers(1, 40), min_size=1, max_size=20),
)
def test_alarms_by_distances_are_those_of_the_rule(distances, cuts):
    """Row by row, whatever blocks they came in: of the moving average of distances."""
    watch = Distances(maxima=by_distance())
    limits, found, first = dict(watch.limits), [], 0
    for cut in [*cuts, len(distances)]:
        if part := distances[first : first + cut]:
            found += watch.see(*part)
        first += cut

    rows = [{"ewma": average} for average in oracle.ewma(distances, limits["ewma"])]
    expected = oracle.watched(rows, limits, after=5, of=8, at_once=("ewma",))
    assert expected == found[: len(distances)]


def test_one_row_that_is_far_off_raises_an_alarm():
    """The moving average is compared as it is: it needs no other row to agree; ten limits do."""
    watch = Distances(maxima=by_distance())
    watch.see(*60 * [1.0])

    assert [False, False, True] == watch.see(9.0, 1.0, 60.0)


def test_a_row_is_clipped_by_its_own_distance():
    """Not by the average, in which it stays for some rows: those that follow are learnt whole."""
    watch = Distances(maxima=by_distance())
    limit = dict(watch.limits)["ewma"]
    watch.see(*60 * [1.0])
    watch.see(WILD * limit + 0.1, 1.0, 1.0)

    assert (watch.factors[0] < 1, [1.0, 1.0]) == (True, watch.factors[1:].tolist())


def test_a_restart_during_an_alarm_begins_the_mean_anew():
    """Unknown rows are no scores: the worst moment is a number, and the alarm stays open."""
    watch = Distances(maxima=by_distance())
    watch.see(*20 * [9.0])
    kept = watch.restarted()
    kept.see(*5 * [9.0])

    assert kept.open is not None
    assert math.isfinite(kept.open.worst)


def test_a_model_without_factors_forgets_the_moving_average():
    """The statistics change with the model, and back: no alarm comes of that."""
    watch = Distances(maxima=by_distance())
    watch.see(*20 * [3.0])
    watch.detector = watch.detector.with_maxima(group())
    Watch.see(watch, *20 * [1.0])
    watch.hear(by_distance())

    assert not any(watch.see(*20 * [3.0]))


def test_an_alarm_that_settles_is_raised_and_not_confirmed():
    """The next rows are measured from the new level: scores about the one before do not count."""
    watch = raised()
    watch.detector = watch.detector.settle(watch.now.wall)
    (alarm,) = watch.alarms
    status = watch.alarm_status()

    assert (False, True, "") == (alarm.is_open, alarm.settled, alarm.verdict)
    assert (1, 0) == (status.raised, status.confirmed)
    assert not any(watch.see(*20 * [1.0]))
    assert any(watch.see(*8 * [9.0]))
    assert 2 == watch.alarm_status().raised


def test_a_stuck_channel_is_an_alarm():
    """Whatever scores say, and for as long as it is; one that is accepted may stay as it is."""
    watch = Watch()
    watch.sticks(1)
    watch.minds(0.1)
    assert ("stuck", (("temp", 1.0),)) == (watch.open.cause, watch.open.top)
    assert [True] * 100 == watch.minds(*100 * [0.1])
    assert watch.decide(watch.open.number, accept=True)
    watch.minds(0.1)
    assert watch.open is None
    # It moved, and is stuck again: that is another one.
    watch.sticks()
    watch.minds(0.1)
    watch.sticks(1)
    watch.minds(0.1)
    assert watch.open is not None


def test_a_channel_with_two_states_is_stuck_after_twice_its_longest_run():
    """A plug that is off all night repeats a number, while the others move."""
    watch, cycles = Watch(), DutyCycles.none(len(NAMES))
    hours = np.full(len(NAMES), np.log(8 * 3600.0))
    cycles = cycles._replace(state=0 * hours, runs_low=hours, longest_low=hours)
    for run_h, stuck in ((15.0, False), (17.0, True)):
        run_s = np.full(len(NAMES), 3600.0 * run_h)
        watch.detector = replace(watch.detector, duty=cycles._replace(run_s=run_s))
        watch.sticks(1)
        watch.minds(0.1)
        assert stuck == (watch.open is not None)


def highest_hours(watch: Watch) -> list[float]:
    """Return the hours that were counted, highest first, to within a tenth."""
    sketch = watch.maxima.spe
    each = [(2.0 ** (index * 2.0**sketch.level / 8), n) for index, n in sketch.bins]
    return [value for value, n in reversed(each) for _ in range(n)]


def an_alarm_up_to(watch: Watch, most: float) -> None:
    """Let an hour end in an alarm that goes higher in the next, and ends by itself."""
    watch.see(*55 * [1.0], *5 * [4.2])  # the last row raises it
    assert watch.open is not None
    watch.see(*20 * [most], *100 * [0.1])
    assert watch.open is None


def test_an_hour_counts_with_the_alarm_that_it_ended_in():
    """Else the limit could hardly rise; it counts once, and when the alarm is over."""
    watch = Watch()
    watch.see(*55 * [1.0], *5 * [4.2])
    watch.see(*60 * [4.7])
    assert 0 == watch.maxima.spe.n

    watch.see(*60 * [0.1])

    assert [pytest.approx(4.7, rel=0.05)] == highest_hours(watch)


def test_an_alarm_within_one_hour_counts_as_high_as_it_went():
    """However the rows come: one by one, too."""
    watch = Watch()
    for score in (*10 * [1.0], *5 * [4.2], *5 * [4.7], *40 * [0.1]):
        watch.see(score)

    assert [pytest.approx(4.7, rel=0.05)] == highest_hours(watch)


def test_blocks_keep_their_length_after_an_alarm():
    """An hour is sixty rows, also when the rows that end an alarm come with those of the next."""
    watch = Watch()
    an_alarm_up_to(watch, 4.8)
    watch.see(*30 * [0.1])
    watch.see(*300 * [0.1])

    assert (60 + 120 + 330) // 60 - 1 == watch.maxima.spe.n


@pytest.mark.parametrize("verdict", ["accepted", "rejected"])
def test_an_alarm_that_a_person_judges_counts_as_it_was_raised(verdict: str):
    watch = Watch()
    watch.see(*55 * [1.0], *5 * [4.2], *20 * [4.8])
    assert watch.decide(watch.open.number, accept=verdict == "accepted")
    watch.see(*100 * [0.1])

    assert [pytest.approx(4.2, rel=0.05)] == highest_hours(watch)[:1]


def test_a_lasting_change_counts_as_it_was_raised():
    """Its rows are learnt after a day, or it settles: that is no rare hour."""
    learnt, settled = Watch(replace(SETTINGS, max_withheld_s=HOUR_S / 2)), Watch()
    an_alarm_up_to(learnt, 4.8)
    settled.see(*55 * [1.0], *5 * [4.2], *20 * [4.8])
    settled.detector = settled.detector.settle(settled.now.wall)
    settled.see(*100 * [0.1])

    assert [pytest.approx(4.2, rel=0.05)] == highest_hours(learnt)[:1]
    assert [pytest.approx(4.2, rel=0.05)] == highest_hours(settled)[:1]


def test_a_small_group_counts_alarms_as_they_were_raised():
    """Of one machine or two, a faulty one could raise its own limit."""
    watch = Watch(maxima=group(hours=2 * 1008))
    assert 2 == watch.detector.limits.nodes
    an_alarm_up_to(watch, 4.8)

    assert [pytest.approx(4.2, rel=0.05)] == highest_hours(watch)[:1]


def test_a_fault_that_no_person_confirms_counts_as_high_as_the_limit():
    """However steeply it begins: a machine's faults, one after another, must not hide the next."""
    watch = Watch(maxima=group(hours=2 * 1008))
    watch.see(*55 * [1.0], *5 * [400.0], *20 * [400.0], *100 * [0.1])

    assert [pytest.approx(watch.limits["spe"], rel=0.03)] == highest_hours(watch)[:1]


def test_a_machine_that_is_always_alarmed_buys_no_silence():
    """Of its alarms the first counts as high as it went, and twice as many as were promised."""
    watch = Watch(replace(SETTINGS, at_most_per_s=1 / (20 * HOUR_S)))
    for _ in range(10):
        an_alarm_up_to(watch, 4.8)

    status = watch.alarm_status()
    high = [each for each in highest_hours(watch) if each > 4.5]
    assert 10 == status.raised
    assert 1 <= len(high) <= 1 + 2 * status.allowed < 5


def test_what_was_promised_and_what_came():
    """Hours that were watched, false alarms that they allow, alarms that were raised."""
    watch = Watch(replace(SETTINGS, at_most_per_s=1 / (10 * HOUR_S)))
    watch.see(*600 * [1.0])
    watch.see(*8 * [9.0], *52 * [0.1])
    alarm_status = watch.alarm_status()

    assert (11 * HOUR_S, pytest.approx(1.1), 1, 0) == (
        *(alarm_status.watched_s, alarm_status.allowed),
        *(alarm_status.raised, alarm_status.confirmed),
    )


def test_no_period_means_by_the_clock():
    """Hours end when they are over; a silence of a day is not watched."""
    watch = Watch(replace(SETTINGS, period_s=0.0))
    for _ in range(130):
        watch.see(1.0)
    watch.minute += 1440
    watch.see(1.0)

    assert 3 == watch.maxima.spe.n


def test_an_alarm_can_be_named_only_as_one():
    """An alarm is a value: what it is over by is said once."""
    alarm = Alarm("a", 1, 5.0, 6.0, 0.0, 2.0, "spe", (), 1)

    assert 7.0 == alarm.over(7.0).ended
    assert 5.0 == alarm.over(4.0).ended
    assert 7.0 == alarm.over(7.0).over(9.0).ended
    assert alarm.over(0.0).ended > 0


def test_a_channel_that_was_stuck_before_a_restart_is_still():
    """Its alarm is not over, nor raised again; and it can be accepted at once."""
    watch = Watch()
    watch.sticks(1)
    watch.minds(0.1)
    watch = watch.restarted()
    assert (1,) == watch.detector.stuck
    assert [True] * 60 == watch.minds(*60 * [0.1])
    assert 1 == len(watch.alarms)
    assert watch.decide(watch.open.number, accept=True)
    assert () == watch.detector.stuck


def test_without_limits_only_a_stuck_channel_can_be_over():
    """Where a root begins anew, nobody can say that scores are ordinary again."""
    watch, stuck = raised(), Watch()
    watch.hear(None)
    watch.see(*100 * [0.1])
    assert watch.open is not None

    stuck.hear(None)
    stuck.sticks(0)
    stuck.minds(0.1)
    assert stuck.open is not None
    stuck.sticks()
    stuck.see(*100 * [0.1])
    assert stuck.open is None


def test_no_fault_makes_a_tail():
    """However far over the limit an hour came, it counts for a quarter more than the limit."""
    watch = Watch()
    an_alarm_up_to(watch, 1e9)

    assert pytest.approx(1.25 * LEVEL, rel=0.05) == highest_hours(watch)[0]


def test_an_alarm_is_over_half_way_to_an_ordinary_hour():
    """Where ordinary hours come close to the limit, that is close to the limit, too."""
    near, outliers = Watch(), Watch()
    usual = QuantileSketch.of(np.repeat([0.96 * LEVEL, LEVEL], [4000, 800]), FINE)
    near.hear(BlockMaxima(usual, usual, empty(FINE), longest=4800))
    for watch in (near, outliers):
        watch.see(*8 * [9.0], *60 * [0.9 * LEVEL])

    assert near.open is None
    assert outliers.open is not None


@given(st.lists(st.integers(1, 80), min_size=1, max_size=20), st.booleans())
def test_what_is_withheld_does_not_depend_on_the_cut(cuts, rejects):
    """Nor what hours come to: an alarm within one call is one, also its last rows."""
    rows = [*30 * [1.0], *25 * [9.0], *60 * [0.1], *70 * [9.0], *90 * [1.5]]

    def run(cuts: list[int]) -> tuple[list[bool], DetectorState]:
        watch, held, first = Watch(replace(SETTINGS, max_withheld_s=3000.0)), [], 0
        for cut in [*cuts, len(rows)]:
            if part := rows[first : first + cut]:
                watch.see(*part)
                held += watch.held.tolist()
            if rejects and watch.open is not None and first + cut >= len(rows):
                watch.decide(watch.open.number, accept=False, at=0.0)
            first += cut
        return held, watch.detector.kept

    (held, one), (cut, other) = run([]), run(cuts)
    assert held == cut
    assert sum(held) == sum(alarm.withheld for alarm in other.alarms) > 60
    assert one.hours.windows == other.hours.windows
    assert one.hours.watched_s == pytest.approx(other.hours.watched_s)


def test_a_second_accept_bears_no_less_than_the_first():
    """What an alarm came to is over what is borne already, where something is."""
    watch = raised()
    watch.decide(watch.open.number, accept=True)
    watch.see(*8 * [30.0])
    watch.decide(watch.open.number, accept=True)

    assert not any(watch.see(*60 * [30.0]))


def test_what_is_accepted_before_limits_are_back_is_borne_as_well():
    """A root that begins anew has none for a while."""
    watch = raised()
    watch.hear(None)
    watch.decide(watch.open.number, accept=True)
    watch.hear(group())

    assert not any(watch.see(*60 * [9.0]))


# -- provisional limits ---------------------------------------------------------------

QUIET = np.random.default_rng(0).uniform(1.0, 2.0, 100).tolist()


def provisional() -> Watch:
    """Return a watch without limits of its group that has seen a hundred rows, and then higher."""
    watch = Watch()
    watch.hear(None)
    watch.see(*QUIET)
    assert watch.open is None
    watch.rows = watch.see(*8 * [9.0])
    assert watch.open is not None
    return watch


def test_without_maxima_of_the_moving_average_a_client_is_not_armed():
    """As of a group of earlier versions, or right after an update: single channels are no watch."""
    channel = replace(group(), channel=group().spe)
    limits = AlarmLimits.of(channel, SETTINGS, raised_by(factors=True), 60.0)

    assert AlarmLimits.of(
        replace(channel, ewma=channel.spe), SETTINGS, raised_by(factors=True), 60.0
    ).known
    assert (limits.known, limits.promised) == ({}, False)


def test_an_alarm_by_a_provisional_limit_is_listed_and_marked():
    """It counts neither as open nor as raised, and no command waits for it."""
    watch = provisional()
    status = watch.alarm_status()

    assert [True] == [alarm.provisional for alarm in status.alarms]
    assert ("learning", 0, 0) == (status.state, status.open, status.raised)
    assert not is_urgent(diff((), status.alarms))
    assert 100 < status.provisional_rows < 300
    assert replace(watch.open, provisional=False).packed != watch.open.packed


def test_its_rows_are_withheld_for_twice_the_time_between_false_alarms():
    """Its limits know little of what takes longer: then its rows are learnt, and limits rise.

    Not by rows so far off that they are clipped.
    """
    watch = provisional()
    assert [False] * 4 + [True] * 4 == watch.rows

    held, longest = 4, math.ceil(2 * watch.alarm_status().provisional_rows)
    while watch.withholds:
        watch.see(9.0)
        held += int(watch.held.sum())
    assert longest == held
    watch.see(9.0, 9.0)

    assert not watch.held.any()
    assert watch.detector.highest.values["spe"] < 2.0
    watch.see(*8 * [6.0])
    assert 6.0 == watch.detector.highest.values["spe"]
    watch.see(*40 * [6.0])
    assert watch.open is None


@pytest.mark.parametrize("lasts", [8, 40, 200])
@pytest.mark.parametrize("cut", [1, 8, 300])
@pytest.mark.parametrize("maxima", [None, group(hours=71)])
def test_a_second_break_is_found_and_a_third(lasts, cut, maxima):
    """A provisional alarm is not learnt: its rows raise no limit further than one alarm does."""
    watch = Watch()
    watch.hear(maxima)
    watch.see(*QUIET)
    row = np.repeat(3 * [1.0, 9.0], 3 * [60, lasts])
    for first in range(0, len(row), cut):
        watch.see(*row[first : first + cut])

    assert [True] * 3 == [alarm.provisional for alarm in watch.alarms]


def test_a_second_break_is_found_while_the_first_lasts_over_a_restart():
    """What is withheld, and for how long, outlives the process."""
    watch = provisional()
    watch.see(*40 * [9.0])
    again = watch.restarted()
    again.hear(None)
    again.see(*40 * [9.0])

    assert again.held.all()
    assert 84 * 60 == pytest.approx(again.detector.log.held_s)
    assert watch.detector.highest.values == again.detector.highest.values
    again.see(*60 * [1.0])
    assert again.open is None
    again.see(*8 * [9.0])
    assert again.open is not None


def test_an_open_provisional_alarm_keeps_its_limits_while_the_group_learns():
    """Its node's rows wait, and the limits are no longer rare for so many rows of the group."""
    watch = provisional()
    before = watch.limits
    watch.detector = watch.detector.with_maxima(None, group_rows=5000)
    watch.see(*40 * [9.0])
    assert set(before) == set(watch.limits)
    assert watch.held.all()

    watch.see(*60 * [1.0])
    assert watch.open is None


def test_a_provisional_limit_that_is_too_low_grows_alarm_by_alarm():
    """So a node is not in alarm for ever: each alarm that ends counts as high as its limit."""
    watch = Watch()
    watch.hear(None)
    watch.see(*QUIET)
    most = []
    for _ in range(9):
        watch.see(*8 * [4.0])
        most.append(watch.limits["spe"])
        watch.see(*60 * [1.0])

    assert 4.0 < watch.limits["spe"] < 5.0
    assert most == sorted(most)
    assert len(watch.alarms) < 9
    assert watch.open is None


def test_a_provisional_alarm_counts_as_high_as_its_limit_at_most():
    """In the group's maxima, while its rows are withheld and after."""
    watch = provisional()
    limit = watch.limits["spe"]
    watch.see(*60 * [9.0])
    watch.see(*120 * [1.0])

    assert 2 <= watch.maxima.longest
    assert limit * 1.02 >= quantile(watch.maxima.spe, 1.0)


def test_a_verdict_on_a_provisional_alarm_holds():
    """A fault is never learnt, however long it lasts; what is normal ends the alarm."""
    watch = provisional()
    watch.decide(watch.open.number, accept=False)
    watch.see(*1000 * [9.0])
    assert watch.held.all()
    assert 9.0 > watch.detector.highest.values["spe"]

    watch.decide(watch.open.number, accept=True)
    assert not any(watch.see(*60 * [9.0]))
    assert not watch.held.any()


def test_it_ends_when_limits_keep_the_promise():
    """What is over those is an alarm of its own, which is sent."""
    watch = provisional()
    watch.hear(group())
    watch.see(*8 * [9.0])

    assert [False, True] == [alarm.provisional for alarm in watch.alarms]
    assert [True, False] == [alarm.is_open for alarm in watch.alarms]
    assert 1 == watch.alarm_status().raised


def test_a_stuck_channel_is_no_provisional_alarm():
    """It ends one that is open, and withholds rows."""
    watch = provisional()
    watch.sticks(1)
    watch.minds(9.0)

    assert ["stuck", False] == [watch.open.cause, watch.open.provisional]
    assert 1 == watch.alarm_status().open


def test_a_restart_keeps_the_limits():
    """And an open alarm stays what it is."""
    watch = provisional()
    again = watch.restarted()
    again.hear(None)
    again.see(1.0)

    assert watch.detector.highest.values == again.detector.highest.values
    assert again.open is not None
    assert again.open.provisional


@pytest.mark.parametrize(("hours", "promised"), [(60, False), (100, True)])
def test_the_limits_of_a_group_are_provisional_until_they_have_settled(hours, promised):
    """Three days from its first scores; they are then of the promised rate."""
    maxima = replace(group(LEVEL, 400), longest=hours)
    limits = AlarmLimits.of(maxima, SETTINGS)

    assert promised == limits.promised
    assert promised == (limits.provisional_s == 0.0)
    if not promised:
        assert pytest.approx(12 * HOUR_S) == limits.armed_in_s
        assert limits.provisional_s <= 7 * 86400.0


@pytest.mark.parametrize("restarts", [False, True])
def test_a_node_stays_armed_while_half_of_the_maxima_are_left(restarts):
    """Every three weeks a node forgets those of three weeks: 216 are needed for one in a month."""
    settings = replace(SETTINGS, at_most_per_s=1 / (28 * 86400.0))
    watch, few = Watch(settings, maxima=group(hours=220)), group(hours=110)
    watch.see(*60 * [1.0])
    watch = watch.restarted() if restarts else watch
    watch.hear(None)  # a root that begins again has none at first
    watch.hear(few)

    assert watch.detector.limits.promised
    assert not Watch(settings, maxima=few).detector.limits.promised
    watch.hear(group(hours=100))
    assert not watch.detector.limits.promised


@pytest.mark.parametrize("maxima", [None, group(hours=45)])
def test_an_alarm_outlasts_the_limits_that_raised_it(maxima):
    """Where a root begins again, a node's own limits are no reason to end it, or to learn it."""
    watch = Watch()
    watch.hear(None)
    watch.see(*80 * [1.0])
    watch.hear(group())
    watch.see(*8 * [2 * LEVEL])
    alarm = watch.open
    watch.hear(maxima)
    watch.see(*60 * [2 * LEVEL])

    assert alarm is not None
    assert watch.open is not None
    assert alarm.name == watch.open.name
    assert watch.held.all()


@pytest.mark.parametrize(("nodes", "days"), [(1, 9), (40, 3)])
def test_blocks_of_another_length_are_reported_once_they_are_enough_for_the_limits(nodes, days):
    """One alarm in 28 days needs the blocks of nine: of one node, or of a few hours of forty."""
    watch = Watch(replace(SETTINGS, period_s=600.0, at_most_per_s=1 / (28 * 86400.0)))
    maxima = replace(group(hours=300 * nodes), longest=300)
    watch.hear(maxima)
    watch.see(*12 * 144 * [1.0])
    watch.detector = watch.detector.with_maxima(maxima, block_s=16384.0)
    watch.see(*(days - 1) * 144 * [1.0])

    assert watch.detector.hours.maxima.block_s == 0.0
    watch.see(*144 * [1.0])
    assert watch.detector.hours.maxima.block_s == 16384.0


def test_few_maxima_of_a_group_support_a_rate():
    """Half of one in all of them: twice as rare as what was seen."""
    limits = AlarmLimits.of(group(hours=50), SETTINGS)

    assert pytest.approx(50 * HOUR_S / 0.5 / 1.6) == limits.provisional_s
    assert not AlarmLimits.of(group(hours=39), SETTINGS).known


def test_a_rate_of_rows_becomes_one_of_time():
    """By the time that a row stands for; without it there are no limits."""
    by_rows = replace(SETTINGS, at_most_per_s=0.0, at_most_per_row=1 / 10_080)
    by_clock = replace(by_rows, period_s=0.0)

    assert AlarmLimits.of(group(), SETTINGS).known == AlarmLimits.of(group(), by_rows).known
    assert not AlarmLimits.of(group(), by_clock).known
    assert AlarmLimits.of(group(), by_clock, row_s=60.0).known
