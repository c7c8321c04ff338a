"""The sentry: an alarm begins once, is over once, and keeps its rows from being learnt."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.client.detector import AlarmDetector, Watched
from submerge.protocol.alarm_status import REMEMBERED, Alarm
from submerge.protocol.machine import Now
from submerge.protocol.settings import AlarmSettings
from submerge.stats.block_maxima import HOUR_S, BlockMaxima
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from support import oracle

EPOCH = 1_700_000_000.0
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
    """A sentry, and the minutes that pass before it."""

    def __init__(
        self,
        settings: AlarmSettings = SETTINGS,
        kept: Watched | None = None,
        minute: int = 0,
        maxima: BlockMaxima | None = None,
    ) -> None:
        self.detector = AlarmDetector("pump-1", settings, ("flow", "temp"), kept)
        self.detector.hear(group() if maxima is None else maxima)
        self.minute, self.settings = minute, settings

    @property
    def now(self) -> Now:
        return Now(60.0 * self.minute, EPOCH + 60.0 * self.minute)

    def see(self, *spe: float, t2: float = 0.0, settled: bool = True, stuck: bool = False):
        """Let rows come; return which belong to an alarm."""
        self.minute += len(spe)
        scores = {"spe": np.array(spe), "t2": np.full(len(spe), t2)}
        alarmed, self.held = self.detector.judge(
            scores, self.now, ready=True, settled=settled, stuck=stuck, version=7
        )
        return alarmed.tolist()

    def restarted(self) -> Watch:
        """Kill the process, and start another from what was kept."""
        return Watch(self.settings, self.detector.remembered, self.minute)


def raised(**settings: float) -> Watch:
    """Return a watch with an alarm that has just been raised."""
    watch = Watch(replace(SETTINGS, **settings))
    watch.see(*8 * [9.0])
    assert watch.detector.open is not None
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
    limits = dict(watch.detector.limits)
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
    alarm = watch.detector.open
    limit = watch.detector.limits["spe"]

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
    limit = watch.detector.limits["spe"]
    watch.see(*100 * [0.9 * limit])
    assert watch.detector.open is not None
    watch.see(*20 * [0.1])
    assert watch.detector.open is not None
    watch.see(*20 * [0.1])

    assert watch.detector.open is None
    (alarm,) = watch.detector.alarms
    assert alarm.began < alarm.ended <= watch.now.wall


def test_before_there_is_a_limit_there_is_no_alarm():
    """Too short a time, too few hours, or nothing heard: it says how long that will be."""
    maxima = [None, group(hours=71), BlockMaxima(*3 * [QuantileSketch.of(np.array([]), FINE)])]
    waits = []
    for each in maxima:
        watch = Watch()
        watch.detector.hear(each)
        assert [False] * 20 == watch.see(*20 * [math.inf])
        state = watch.detector.state(ready=True, paused=False, stale=False)
        waits.append(watch.detector.alarm_status(state, 0).armed_in_s)
        assert "learning" == state

    assert [-1.0, HOUR_S, -1.0] == waits


def test_states_go_before_one_another():
    """An alarm before all; then what an operator said; then whether there is a limit."""
    watch, alarmed, unarmed = Watch(), raised(), Watch()
    unarmed.detector.hear(None)

    def reported(detector: AlarmDetector, **facts: bool) -> str:
        return detector.state(**{"ready": True, "paused": False, "stale": False, **facts})

    assert "armed" == reported(watch.detector)
    assert "stale" == reported(watch.detector, stale=True)
    assert "paused" == reported(watch.detector, stale=True, paused=True)
    assert "learning" == reported(watch.detector, stale=True, ready=False)
    assert "learning" == reported(unarmed.detector)
    assert "alarm" == reported(alarmed.detector, paused=True)


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
    assert watch.detector.withholds
    watch.see(*40 * [9.0])
    assert not watch.detector.withholds

    watch.detector.freeze()
    watch.detector.hear(group(level=100.0))  # as if the group had learnt what is wrong
    watch.see(*100 * [9.0])
    assert watch.detector.open is not None
    # Also after a restart.
    watch = watch.restarted()
    watch.detector.hear(group(level=100.0))
    watch.see(*100 * [9.0])
    assert 1 == len(watch.detector.alarms)
    assert watch.detector.open is not None
    watch.see(*40 * [0.1])
    assert watch.detector.open is None


def test_a_fault_is_never_learnt():
    """Once a person has rejected what it says, its rows are withheld for as long as it lasts."""
    watch = raised(max_withheld_s=3600.0)
    number = watch.detector.open.number

    assert watch.detector.decide(number, accept=False, at=watch.now.wall)
    assert not watch.detector.decide(number, accept=False, at=watch.now.wall)
    watch.see(*1000 * [9.0])
    assert watch.held.all()
    assert watch.detector.withholds
    assert (1, 1) == (
        watch.detector.alarm_status("alarm", 0).raised,
        watch.detector.alarm_status("alarm", 0).confirmed,
    )


def test_what_is_accepted_is_borne_until_it_has_gone():
    """The alarm is over at once; scores as high raise no other, and later ones count again."""
    watch = raised()
    number = watch.detector.open.number
    assert watch.detector.decide(number, accept=True, at=watch.now.wall)
    assert watch.detector.open is None
    assert not any(watch.see(*600 * [9.0]))
    # It has been learnt: scores come down, and with them what is borne.
    watch.see(*300 * [0.5])
    assert any(watch.see(*8 * [9.0]))
    assert "accepted" == watch.detector.alarms[1].verdict


def test_a_verdict_on_what_is_over_is_remembered():
    """It changes what is counted, and nothing else; of an alarm that is unknown it is no news."""
    watch = raised()
    number = watch.detector.open.number
    watch.see(*60 * [0.1])

    assert watch.detector.decide(number, accept=False, at=0.0)
    assert "rejected" == watch.detector.alarms[0].verdict
    assert watch.detector.decide(number, accept=True, at=0.0)
    assert 0 == watch.detector.alarm_status("armed", 0).confirmed
    assert not watch.detector.decide(number + 1, accept=True, at=0.0)


@pytest.mark.parametrize("rows", [0, 1, 3, 30])
def test_a_restart_neither_raises_nor_ends_it(rows):
    """The alarm that was open is the same; nothing but calm rows end it."""
    watch = raised()
    number = watch.detector.open.number
    for _ in range(3):
        watch = watch.restarted()
        watch.see(*rows * [9.0]) if rows else None
    watch.see(*4 * [9.0])

    assert [number] == [alarm.number for alarm in watch.detector.alarms]
    assert watch.detector.open is not None
    watch = watch.restarted()
    watch.see(*64 * [0.1])
    assert [number] == [alarm.number for alarm in watch.detector.alarms]
    assert watch.detector.open is None
    assert 1 == watch.restarted().detector.alarm_status("armed", 0).raised


def test_alarms_have_names_of_their_own():
    """Also where a clock stands still, or is set back; the last eight that are over are told."""
    watch = Watch()
    for _ in range(12):
        watch.minute = 0
        watch.see(*8 * [9.0])
        watch.minute = 0
        watch.see(*60 * [0.1])

    numbers = [alarm.number for alarm in watch.detector.alarms]
    assert numbers == sorted(set(numbers), reverse=True)
    assert REMEMBERED + 1 == len(numbers)


def test_the_guiltiest_are_named():
    """By their shares over the rows of the alarm; those without blame are not."""
    watch = raised()
    watch.detector.accuse(np.array([0.0, 1.0]))
    assert (("temp", 1.0),) == watch.detector.open.top
    for _ in range(100):
        watch.detector.accuse(np.array([0.75, 0.25]))
    (first, share), (second, _) = watch.detector.open.top
    assert ("flow", "temp") == (first, second)
    assert 0.6 < share < 0.75


def test_a_stuck_channel_is_an_alarm():
    """Whatever scores say, and for as long as it is; one that is accepted may stay as it is."""
    watch = Watch()
    assert watch.detector.find_stuck((1,), watch.now, 7)
    assert ("stuck", (("temp", 1.0),)) == (watch.detector.open.cause, watch.detector.open.top)
    assert [True] * 100 == watch.see(*100 * [0.1], stuck=True)
    assert watch.detector.decide(watch.detector.open.number, accept=True, at=watch.now.wall)
    assert not watch.detector.find_stuck((1,), watch.now, 7)
    assert watch.detector.open is None
    # It moved, and is stuck again: that is another one.
    watch.detector.find_stuck((), watch.now, 7)
    assert watch.detector.find_stuck((1,), watch.now, 7)


def test_an_hour_that_ends_in_an_alarm_counts_as_it_was_then():
    """Its tail must not be missing; what the alarm comes to later is no hour of this node."""
    watch = Watch()
    watch.see(*55 * [1.0], *5 * [5.0])  # one hour: the last row raises it
    watch.see(*120 * [50.0])
    (one,) = watch.detector.maxima.spe.bins

    assert 1 == one[1]
    highest = 2.0 ** (one[0] * 2.0**watch.detector.maxima.spe.level / 8)
    assert 5.0 <= highest < 5.2


def test_what_was_promised_and_what_came():
    """Hours that were watched, false alarms that they allow, alarms that were raised."""
    watch = Watch(replace(SETTINGS, at_most_per_s=1 / (10 * HOUR_S)))
    watch.see(*600 * [1.0])
    watch.see(*8 * [9.0], *52 * [0.1])
    alarm_status = watch.detector.alarm_status("armed", 0)

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

    assert 3 == watch.detector.maxima.spe.n


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
    watch.detector.find_stuck((1,), watch.now, 7)
    watch = watch.restarted()
    assert watch.detector.recall_stuck((1,))
    assert [True] * 60 == watch.see(*60 * [0.1], stuck=True)
    assert watch.detector.decide(watch.detector.open.number, accept=True, at=watch.now.wall)
    assert not watch.detector.recall_stuck((1,))


def test_without_limits_only_a_stuck_channel_can_be_over():
    """Where a root begins anew, nobody can say that scores are ordinary again."""
    watch, stuck = raised(), Watch()
    watch.detector.hear(None)
    watch.see(*100 * [0.1])
    assert watch.detector.open is not None

    stuck.detector.hear(None)
    stuck.detector.find_stuck((0,), stuck.now, 7)
    stuck.see(*100 * [0.1])
    assert stuck.detector.open is None


def test_no_fault_makes_a_tail():
    """However far over the limit an hour came, it counts for a quarter more than the limit."""
    watch = Watch()
    watch.see(*52 * [1.0], *8 * [1e9])
    (one,) = watch.detector.maxima.spe.bins

    highest = 2.0 ** (one[0] * 2.0**watch.detector.maxima.spe.level / 8)
    assert 1.25 * LEVEL / 1.05 < highest < 1.25 * LEVEL * 1.05


def test_an_alarm_is_over_half_way_to_an_ordinary_hour():
    """Where ordinary hours come close to the limit, that is close to the limit, too."""
    near, outliers = Watch(), Watch()
    usual = QuantileSketch.of(np.repeat([0.96 * LEVEL, LEVEL], [4000, 800]), FINE)
    near.detector.hear(BlockMaxima(usual, usual, empty(FINE), longest=4800))
    for watch in (near, outliers):
        watch.see(*8 * [9.0], *60 * [0.9 * LEVEL])

    assert near.detector.open is None
    assert outliers.detector.open is not None


@given(st.lists(st.integers(1, 80), min_size=1, max_size=20), st.booleans())
def test_what_is_withheld_does_not_depend_on_the_cut(cuts, rejects):
    """Nor what hours come to: an alarm within one call is one, also its last rows."""
    rows = [*30 * [1.0], *25 * [9.0], *60 * [0.1], *70 * [9.0], *90 * [1.5]]

    def run(cuts: list[int]) -> tuple[list[bool], Watched]:
        watch, held, first = Watch(replace(SETTINGS, max_withheld_s=3000.0)), [], 0
        for cut in [*cuts, len(rows)]:
            if part := rows[first : first + cut]:
                watch.see(*part)
                held += watch.held.tolist()
            if rejects and watch.detector.open is not None and first + cut >= len(rows):
                watch.detector.decide(watch.detector.open.number, accept=False, at=0.0)
            first += cut
        return held, watch.detector.remembered

    (held, one), (cut, other) = run([]), run(cuts)
    assert held == cut
    assert sum(held) == sum(alarm.withheld for alarm in other.alarms) > 60
    assert one.hours.windows == other.hours.windows
    assert one.hours.watched_s == pytest.approx(other.hours.watched_s)


def test_a_second_accept_bears_no_less_than_the_first():
    """What an alarm came to is over what is borne already, where something is."""
    watch = raised()
    watch.detector.decide(watch.detector.open.number, accept=True, at=watch.now.wall)
    watch.see(*8 * [30.0])
    watch.detector.decide(watch.detector.open.number, accept=True, at=watch.now.wall)

    assert not any(watch.see(*60 * [30.0]))


def test_what_is_accepted_before_limits_are_back_is_borne_as_well():
    """A root that begins anew has none for a while."""
    watch = raised()
    watch.detector.hear(None)
    watch.detector.decide(watch.detector.open.number, accept=True, at=watch.now.wall)
    watch.detector.hear(group())

    assert not any(watch.see(*60 * [9.0]))
