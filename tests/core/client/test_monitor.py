"""NodeMonitor: which rows a client learns, about which mean, and by what an alarm is judged."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import Schema
from submerge.client.incarnation import ClientIncarnation
from submerge.client.ingest import Ingest
from submerge.client.monitor import NodeMonitor, newest_score
from submerge.client.monitor_state import MonitorState
from submerge.condition import Condition
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Now, Scored
from submerge.protocol.messages import Counts, Incarnation, Model
from submerge.protocol.score_trail import NO_TRAIL, NOTHING, ONE, UNLIMITED, level_of
from submerge.protocol.settings import AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.node_mean import OwnMean
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from submerge.stats.residual_scale import ResidualScale

DIM, RANK = 12, 3
NAMES = tuple(f"x{i}" for i in range(DIM))
SCHEMA = Schema(DIM, center="own")
SUMMARIES = Subspaces(RANK)
ALARMS = AlarmSettings(period_s=600.0, max_withheld_s=7200.0)
SETTINGS = ClientSettings("n", "g", "root", alarms=ALARMS, fills_gaps=True)
PATIENT = replace(SETTINGS, alarms=replace(ALARMS, max_withheld_s=86400.0))
CAUSES = np.random.default_rng(0).standard_normal((RANK, DIM))
DAY = 144
VARIES = np.arange(DIM) < DIM - 1
"""All channels but one that stands still, in some tests."""


class Node:
    """A client's intake under a model of its fleet; rows of ten minutes."""

    def __init__(
        self, settings: ClientSettings = SETTINGS, kept: MonitorState | None = None
    ) -> None:
        self.rng = np.random.default_rng(1)
        self.row = 0
        self.intake = Ingest(SUMMARIES, self.rng, settings)
        self.intake.load(kept)
        self.current = ClientIncarnation(
            Incarnation(1, 1), SCHEMA, SUMMARIES, self.now, learns=True, raw=False, lost=0
        )
        self.model = fleet(limit=1e9)

    @property
    def now(self) -> Now:
        return Now(600.0 * self.row, 1.7e9 + 600.0 * self.row)

    @property
    def monitor(self) -> NodeMonitor:
        assert self.intake.monitor is not None
        return self.intake.monitor

    def draw(self, n: int) -> np.ndarray:
        noise = self.rng.normal(0, 0.3, (n, DIM))
        return 7.0 + self.rng.standard_normal((n, RANK)) @ CAUSES + noise

    def reads(self, rows: np.ndarray, block: int = 10) -> list[Scored]:
        """Let rows come; return how they were scored."""
        scored = []
        for first in range(0, len(rows), block):
            part = rows[first : first + block]
            self.row += len(part)
            reported = self.intake.read(part, self.current, self.model, self.now)
            scored += [] if reported is None else [reported]
        return scored

    def settled(self) -> Node:
        """After two days of nothing unusual: armed."""
        self.reads(self.draw(2 * DAY))
        self.model = fleet(limit=12.0)
        return self

    def learnt(self) -> int:
        return self.current.counts.learnt


def fleet(limit: float, *, still: bool = False) -> Model:
    """Return the model of nodes that lie elsewhere and vary alike; hours came to `limit`.

    still : whether the last channel never varies
    """
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((4000, RANK)) @ CAUSES + rng.normal(0, 0.3, (4000, DIM))
    rows[:, -1] *= not still
    learner = SUMMARIES.learner(SCHEMA)
    learner.learn(rows, rows)
    sketch = QuantileSketch.of(np.full(9000, limit), FINE)
    maxima = BlockMaxima(sketch, QuantileSketch.of(np.full(9000, 1e6), FINE), empty(FINE), 500)
    return Model(
        *("g", int(limit), SCHEMA.canonical, SCHEMA.fingerprint, learner.summary(), None),
        *(Counts(4000), 40, (0.0, 0.0, 0.0)),
        created=0.0,
        expires=1e12,
        maxima=maxima,
    )


def strayed(rows: np.ndarray, by: float = 6.0, channel: int = 4) -> np.ndarray:
    """Return rows of which one channel is off."""
    rows = rows.copy()
    rows[:, channel] += by
    return rows


def test_rows_are_scored_about_the_node_s_own_mean():
    """It stands seven off the fleet's; from its tenth reading on that is nothing odd."""
    node = Node()
    first, later = node.reads(node.draw(10)), node.reads(node.draw(200))

    assert first[0].scores.spe.min() > 100
    assert np.mean([reported.scores.spe.mean() for reported in later]) == pytest.approx(
        9 * 0.09, rel=0.2
    )


@pytest.mark.parametrize("restarts", [False, True])
def test_a_channel_that_comes_late_begins_at_its_first_readings(restarts):
    """It lies five hundred off what filled it, which is no alarm: its tenth reading is its mean."""
    node = Node()
    early, rows = node.draw(2 * DAY), node.draw(60)
    early[:, 5] = np.nan
    rows[:, 5] += 500.0
    node.reads(early[:-20])
    node = restarted(node) if restarts else node
    node.model = fleet(limit=12.0)
    node.reads(early[-20:])
    assert abs(node.monitor.own.rows[5]) < 20.0
    scored = node.reads(rows)

    assert () == node.monitor.alarms
    assert np.concatenate([each.scores.spe for each in scored]).max() < 12.0
    assert rows[:, 5].mean() == pytest.approx(node.monitor.own.rows[5], abs=1.0)


def test_rows_of_an_alarm_are_counted_and_not_learnt():
    """Neither by the life nor by the mean; nor do they count as usual."""
    node = Node().settled()
    learnt, mean, scores = node.learnt(), node.monitor.own, node.intake.scores
    reported = node.reads(strayed(node.draw(10)))
    alarm = node.monitor.alarms[0]

    assert [False] * 4 + [True] * 6 == reported[0].decision.alarmed.tolist()
    assert (learnt + 4, 6) == (node.learnt(), node.current.counts.withheld)
    assert (6, "spe", "x4") == (alarm.withheld, alarm.cause, alarm.top[0][0])
    assert mean.count + 4 == node.monitor.own.count
    assert scores.spe.n + 4 == node.intake.scores.spe.n


def growing(node: Node, days: int, by: float = 2.0) -> np.ndarray:
    """Return rows of days of which one channel is off, and `by` more each day."""
    rows = node.draw(days * DAY)
    rows[:, 4] += 3.0 + by * np.arange(len(rows)) / DAY
    return rows


def test_a_fault_that_grows_does_not_become_normal():
    """Its rows are learnt after two hours; the alarm is open all the same, for five days."""
    node = Node().settled()
    learnt, rows = node.learnt(), growing(node, 5)
    for day in range(5):
        node.reads(rows[day * DAY : (day + 1) * DAY])
        node.model = replace(fleet(limit=12.0), version=node.model.version + 1)
    assert node.learnt() > learnt + 4 * DAY
    assert 1 == len(node.monitor.alarms)
    assert node.monitor.alarms[0].is_open
    # Without the reference it has long been what is usual.
    assert abs(node.monitor.own.rows[4] - 13.0) < 3.0

    # Also for the process that follows.
    again = Node(kept=node.intake.kept)
    again.row, again.model = node.row, node.model
    again.reads(strayed(again.draw(DAY // 2), by=14.0))
    assert again.monitor.alarms[0].is_open
    again.reads(again.draw(40))
    assert not again.monitor.alarms[0].is_open
    assert not again.monitor.alarms[0].settled


def test_a_change_that_stays_hides_no_later_fault():
    """It settles after a day; a second fault, a day later, raises an alarm of its own."""
    node = Node().settled()
    node.reads(strayed(node.draw(2 * DAY)))
    (first,) = node.monitor.alarms
    lasted = first.ended - first.began

    assert (True, False, "") == (first.settled, first.is_open, first.verdict)
    assert 86_400 <= lasted <= 86_400 + 6 * 600
    assert node.monitor.own.rows[4] == pytest.approx(13.0, abs=0.3)

    node.reads(strayed(strayed(node.draw(10)), channel=7))
    second = node.monitor.alarms[0]
    assert (True, "x7") == (second.is_open, second.first[0][0])
    node.reads(strayed(node.draw(60)))
    assert [False, False] == [alarm.is_open for alarm in node.monitor.alarms]
    # The readings of before are not normal any more: they are a fault, too.
    node.reads(node.draw(10))
    assert node.monitor.alarms[0].is_open
    status = node.monitor.alarm_status(node.now)
    assert (3, 0) == (status.raised, status.confirmed)


def test_what_nobody_judged_does_not_move_the_group_s_model():
    """Rows at the new level are learnt as they would be at the old one."""
    node = Node().settled()
    before = node.current.summary(node.now).parts[0].truncated(RANK)
    node.reads(strayed(node.draw(6 * DAY), by=100.0))
    after = node.current.summary(node.now).parts[0].truncated(RANK)

    assert node.monitor.alarms[0].settled
    assert node.monitor.offset[4] == pytest.approx(100.0, abs=0.3)
    assert after.mean[4] == pytest.approx(before.mean[4], abs=1.0)
    assert after.energy / after.weight < 1.5 * before.energy / before.weight


def scattered(node: Node, days: float) -> np.ndarray:
    """Return rows of which one channel varies far more than it did."""
    rows = node.draw(round(days * DAY))
    rows[:, 4] += node.rng.normal(0, 8.0, len(rows))
    return rows


def test_what_is_rejected_does_not_settle():
    node = Node().settled()
    rows = strayed(node.draw(4 * DAY))
    node.reads(rows[:20])
    number = node.monitor.alarms[0].number
    node.monitor.apply(DesiredState("n", 1, verdicts=((number, False),)), node.now)
    node.reads(rows[20:])

    assert node.monitor.alarms[0].is_open


def test_a_channel_that_varies_more_for_good_is_as_it_is_now():
    """Its alarm ends within days; what breaks then is noticed, and what varies is told no more."""
    node = Node()
    node.model = by_distances(fleet(limit=1e9))
    node.reads(node.draw(2 * DAY))
    node.model = by_distances(fleet(limit=60.0))
    node.reads(scattered(node, 1.9))
    assert node.monitor.alarms[0].is_open
    node.reads(scattered(node, 4.0))
    first = node.monitor.alarms[-1]

    assert (False, True) == (first.is_open, first.settled)
    assert 2 * 86_400 <= first.ended - first.began <= 4 * 86_400 + 6000
    node.reads(scattered(node, 3.0))
    assert not node.monitor.alarms[0].is_open
    told = len(node.monitor.alarms)
    assert told <= 2
    node.reads(scattered(node, 4.0))
    assert told == len(node.monitor.alarms)
    rows = scattered(node, 0.5)
    rows[:, 7] += 8.0
    node.reads(rows)
    second = node.monitor.alarms[0]
    assert (True, "x7") == (second.is_open, second.first[0][0])


def by_distances(model: Model) -> Model:
    """Return a model of factors, with the limit for its averages."""
    maxima = BlockMaxima(*3 * [empty(FINE)], 500, ewma=model.maxima.spe)
    return replace(model, factors=SUMMARIES.factors(model.summary), maxima=maxima)


def test_a_level_outlives_the_process():
    """A restart at noon does not begin the day again; a level that has settled stays."""
    node = Node().settled()
    node.reads(strayed(node.draw(DAY - 10)))
    again = Node(kept=node.intake.kept)
    again.row, again.model = node.row, node.model
    again.reads(strayed(again.draw(30)))
    assert again.monitor.alarms[0].settled

    third = Node(kept=again.intake.kept)
    third.row, third.model = again.row, again.model
    third.reads(strayed(third.draw(50)))
    assert 1 == len(third.monitor.alarms)
    assert third.monitor.offset.tolist() == again.monitor.offset.tolist()


def test_a_node_of_a_group_with_one_mean_settles_too():
    """From then on it is measured from its own mean; the group learns nothing of that."""
    node = Node()
    schema = Schema(DIM, center="fleet")
    node.current = ClientIncarnation(
        Incarnation(1, 1), schema, SUMMARIES, node.now, learns=True, raw=False, lost=0
    )
    node.model = replace(fleet(12.0), schema=schema.canonical, fingerprint=schema.fingerprint)
    node.reads(node.draw(2 * DAY) - 7.0)
    assert node.monitor.own is None
    node.reads(strayed(node.draw(2 * DAY) - 7.0))
    (alarm,) = node.monitor.alarms
    assert alarm.settled
    assert node.monitor.own.rows[4] == pytest.approx(6.0, abs=0.3)

    kept = node.intake.kept
    again = NodeMonitor(SETTINGS, schema, SUMMARIES, kept)
    assert kept.own.rows.tolist() == again.own.rows.tolist()
    node.reads(strayed(strayed(node.draw(10) - 7.0), channel=7))
    assert node.monitor.alarms[0].is_open
    assert node.current.summary(node.now).parts[0].mean[4] == pytest.approx(0.0, abs=1.2)


class Beginner(Node):
    """A node that has read three hundred rows of a group without limits.

    off : what its channels are off by, for as long as it is so
    """

    def __init__(
        self,
        center: str,
        kept: MonitorState | None = None,
        *,
        fills_gaps: bool = True,
        of: int = ALARMS.of,
    ) -> None:
        alarms = replace(PATIENT.alarms, of=of)
        super().__init__(replace(PATIENT, alarms=alarms, fills_gaps=fills_gaps), kept)
        schema = Schema(DIM, center=center)
        self.current = ClientIncarnation(
            Incarnation(1, 1), schema, SUMMARIES, self.now, learns=True, raw=False, lost=0
        )
        new = {"schema": schema.canonical, "fingerprint": schema.fingerprint}
        self.model = replace(self.model, maxima=None, counts=Counts(100), **new)
        self.center, self.off = center, np.zeros(DIM)
        self.off -= 7.0 * (center == "fleet")

    def passes(self, rows: int) -> Alarm | None:
        """Let rows come; return the alarm that is open then."""
        self.reads(self.draw(rows) + self.off, block=4)
        return self.open

    @property
    def open(self) -> Alarm | None:
        """The newest alarm that is open."""
        found = [alarm for alarm in self.monitor.alarms if alarm.is_open]
        return max(found, key=lambda alarm: alarm.number, default=None)

    def restarted(self) -> Beginner:
        again = Beginner(self.center, self.intake.kept)
        again.row, again.model, again.current = self.row, self.model, self.current
        again.off, again.rng = self.off, self.rng
        return again

    def calms(self) -> None:
        """Let rows come until no alarm is open: some are false by a provisional limit."""
        for _ in range(10):
            if self.passes(40) is None:
                return
        raise AssertionError("an alarm stays open")


@pytest.mark.parametrize("stays", [20, 100, 1000])
@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("center", ["own", "fleet"])
def test_by_provisional_limits_a_later_break_is_found(center, restarts, stays):
    """Of another channel and of the same, after a break that went or that is the new level now."""
    node = Beginner(center)
    node.passes(300)
    node.calms()
    before, scale = node.current.summary(node.now).parts[0], node.monitor.channels.residual_scale
    node.off[4] += 20.0
    node.passes(stays)
    settles = stays == 1000
    assert settles is any(alarm.settled for alarm in node.monitor.alarms)
    if not settles:
        assert "x4" in {alarm.first[0][0] for alarm in node.monitor.alarms if alarm.is_open}
        node.off[4] -= 20.0
    for channel in (7, 4):
        if restarts:
            node = node.restarted()
        node.calms()
        node.off[channel] += 8.0
        alarm = node.passes(12)
        assert f"x{channel}" == alarm.top[0][0]
        assert alarm.provisional
        node.off[channel] -= 8.0

    # The few rows before each alarm are learnt, drawn to the mean: neither the model nor what is
    # usual of its channels has learnt of the breaks otherwise.
    after = node.current.summary(node.now).parts[0]
    assert before.mean == pytest.approx(after.mean, abs=0.8)
    assert after.energy / after.weight < 1.3 * before.energy / before.weight
    now = node.monitor.channels.residual_scale
    assert now.squares[4] / now.weight[4] < 2.5 * scale.squares[4] / scale.weight[4]


@pytest.mark.parametrize("keeps", [False, True])
def test_rows_of_a_provisional_alarm_that_keep_to_no_level_are_learnt_sooner(keeps):
    """What comes and goes on the first days is no fault; what stays at a level is withheld."""
    node = Beginner("own")
    node.passes(300)
    node.calms()
    rng = np.random.default_rng(8)
    for _ in range(35):
        node.off[4] = 20.0 if keeps else rng.uniform(-40, 40)
        node.passes(4)

    alarm = node.open
    assert "x4" == alarm.first[0][0]
    assert (alarm.withheld > 130) is keeps


def opened(monitor: NodeMonitor) -> set[str]:
    """Return the first channel of each open alarm."""
    return {alarm.first[0][0] for alarm in monitor.alarms if alarm.is_open}


@pytest.mark.parametrize("center", ["own", "fleet"])
@pytest.mark.parametrize("restarts", [False, True])
def test_what_breaks_beside_an_open_provisional_alarm_is_an_alarm_of_its_own(center, restarts):
    """Both are open, in a new process as well, and each ends when its own channel is well again."""
    node = Beginner(center)
    node.passes(300)
    node.calms()
    node.off[4] += 20.0
    node.passes(40)
    node.off[7] += 20.0
    node.passes(40)
    both = {alarm.number for alarm in node.monitor.alarms if alarm.is_open}
    if restarts:
        node = node.restarted()
        node.passes(4)
    assert {"x4", "x7"} <= opened(node.monitor)
    assert both == {alarm.number for alarm in node.monitor.alarms if alarm.is_open}

    node.off[4] -= 20.0
    node.passes(50)
    assert {"x4", "x7"} & opened(node.monitor) == {"x7"}
    node.off[7] -= 20.0
    node.passes(50)
    assert not {"x4", "x7"} & opened(node.monitor)


@pytest.mark.parametrize("gaps", [False, True])
def test_beside_an_open_provisional_alarm_the_other_channels_are_learnt(gaps):
    """A drift of theirs is followed and raises nothing; of the broken one nothing is learnt.

    Where a node fills no gaps its rows are learnt whole or not at all.
    """
    node = Beginner("own", fills_gaps=gaps)
    node.passes(300)
    node.calms()
    before, learnt = node.current.summary(node.now).parts[0], node.learnt()
    mean = float(node.monitor.own.rows[7])
    node.off[4] += 20.0
    node.passes(16)
    for _ in range(25):
        node.off[7] += 0.04
        node.passes(4)
    after = node.current.summary(node.now).parts[0]

    assert (node.learnt() - learnt > 70) is gaps
    assert after.mean[4] == pytest.approx(before.mean[4], abs=0.8)
    assert after.energy / after.weight < 1.3 * before.energy / before.weight
    assert bool(node.monitor.own.rows[7] > mean + 0.05) is gaps


def test_a_verdict_on_an_alarm_that_is_set_aside():
    """Accepted, its level is normal and the other alarm stays; rejected, it is never learnt."""
    node = Beginner("own")
    node.passes(300)
    node.calms()
    node.off[[4, 7]] += 20.0, 0.0
    node.passes(40)
    node.off[7] += 20.0
    node.passes(40)
    number = {alarm.first[0][0]: alarm.number for alarm in node.monitor.alarms if alarm.is_open}
    verdicts = ((number["x4"], True), (number["x7"], False))
    assert node.monitor.apply(DesiredState("n", 1, verdicts=verdicts), node.now)
    node.passes(60)

    of = {alarm.number: alarm for alarm in node.monitor.alarms}
    assert ("accepted", False) == (of[number["x4"]].verdict, of[number["x4"]].is_open)
    assert ("rejected", True) == (of[number["x7"]].verdict, of[number["x7"]].is_open)
    mean = node.current.summary(node.now).parts[0].mean
    assert mean[7] == pytest.approx(7.0, abs=0.8)


def aside(center: str = "own", **settings) -> Beginner:
    """A node whose fifth channel is set aside."""
    node = Beginner(center, **settings)
    node.passes(300)
    node.calms()
    node.off[4] += 20.0
    node.passes(40)
    assert "x4" in opened(node.monitor)
    return node


def test_beside_a_channel_that_is_set_aside_a_stuck_one_is_found_and_does_not_hold_it():
    """And one that is set aside itself: its readings stand still at 7.2 while the others move."""
    node = Beginner("own")
    node.passes(1500)
    node.calms()
    node.passes(100)

    def stands_still(blocks: int, swing: float) -> None:
        for i in range(blocks):
            node.off[7] = swing * (-1) ** i
            rows = node.draw(4) + node.off
            rows[:, 4] = 7.2
            node.reads(rows, block=4)

    stands_still(60, 20.0)
    stuck = [alarm for alarm in node.monitor.alarms if alarm.cause == "stuck"]
    assert [("x4", True)] == [(alarm.first[0][0], alarm.is_open) for alarm in stuck]
    assert "x7" in opened(node.monitor)

    stands_still(25, 0.0)
    assert "x7" not in opened(node.monitor)


def test_what_is_far_off_before_its_alarm_moves_no_mean_while_another_is_set_aside():
    """Its rows are clipped as they would be without the other alarm."""
    node = aside()
    before = float(node.monitor.own.rows[7])
    rows = node.draw(4) + node.off
    rows[1:3, 7] += 200.0
    node.reads(rows, block=4)

    assert node.monitor.own.rows[7] == pytest.approx(before, abs=0.2)


def test_a_long_block_in_which_an_alarm_that_is_set_aside_ends_and_comes_again():
    """Its end is listed, once, under its number; each alarm has one of its own."""
    node = aside()
    number = node.open.number
    rows = node.draw(240)
    for first in (0, 90, 180):
        rows[first : first + 30, 4] += 20.0
    node.reads(rows, block=240)
    known = [alarm for alarm in node.monitor.alarms if alarm.number == number]

    assert [False] == [alarm.is_open for alarm in known]
    numbers = [alarm.number for alarm in node.monitor.alarms]
    assert len(set(numbers)) == len(numbers)


def test_accepted_in_a_new_process_an_alarm_that_was_set_aside_is_over():
    """Where its rows are is the mean of its channels at once; the others keep theirs."""
    node = aside()
    node.off[7] += 20.0
    node.passes(40)
    mean = node.monitor.own.rows.copy()
    node = node.restarted()
    node.passes(4)
    number = {alarm.first[0][0]: alarm.number for alarm in node.monitor.alarms if alarm.is_open}
    assert node.monitor.apply(DesiredState("n", 1, verdicts=((number["x4"], True),)), node.now)
    node.passes(40)

    others = np.arange(DIM) != 4
    assert node.monitor.own.rows[others] == pytest.approx(mean[others], abs=0.5)
    assert node.monitor.own.rows[4] == pytest.approx(27.0, abs=1.5)
    assert {"x4", "x7"} & opened(node.monitor) == {"x7"}


@pytest.mark.parametrize("of", [20, 64])
def test_channels_are_found_by_as_many_rows_as_an_alarm_looks_back(of):
    node = Beginner("own", of=of)
    node.passes(400)
    node.calms()
    node.off[4] += 20.0
    node.passes(3 * of)

    assert "x4" in opened(node.monitor)


def test_what_is_accepted_is_learnt():
    """The alarm is over, rows are learnt, and the mean is theirs ten readings later."""
    node = Node().settled()
    node.reads(strayed(node.draw(20)))
    number = node.monitor.alarms[0].number
    assert node.monitor.apply(DesiredState("n", 1, verdicts=((number, True),)), node.now)
    learnt = node.learnt()
    node.reads(strayed(node.draw(2 * DAY)))

    assert learnt + 2 * DAY == node.learnt()
    assert [("accepted", False)] == [(a.verdict, a.is_open) for a in node.monitor.alarms]
    assert node.monitor.own.rows[4] == pytest.approx(13.0, abs=0.5)


def test_what_is_rejected_is_never_learnt():
    """However long it lasts."""
    node = Node().settled()
    node.reads(strayed(node.draw(20)))
    number = node.monitor.alarms[0].number
    node.monitor.apply(DesiredState("n", 1, verdicts=((number, False),)), node.now)
    learnt = node.learnt()
    node.reads(strayed(node.draw(3 * DAY)))

    assert learnt == node.learnt()


def test_a_node_that_is_paused_learns_nothing():
    """It scores, and alarms; an older wish changes nothing, and the next process knows it."""
    node = Node().settled()
    assert node.monitor.apply(DesiredState("n", 5, paused=True), node.now)
    assert not node.monitor.apply(DesiredState("n", 4), node.now)
    learnt, withheld = node.learnt(), node.current.counts.withheld
    assert 5 == len(node.reads(node.draw(50)))
    assert (learnt, withheld + 50) == (node.learnt(), node.current.counts.withheld)
    assert "paused" == node.monitor.alarm_status(node.now).state

    again = Node(kept=node.intake.kept)
    again.model = None
    again.reads(again.draw(10))
    assert (0, 10) == (again.learnt(), again.current.counts.withheld)
    assert again.monitor.apply(DesiredState("n", 6, paused=False), again.now)
    again.reads(again.draw(10))
    assert 10 == again.learnt()


def test_a_node_that_is_paused_does_not_learn_what_is_usual():
    """How far channels usually stray, nor how well the others tell them; it sees what is stuck."""
    node = Node().settled()
    node.monitor.apply(DesiredState("n", 1, paused=True), node.now)
    node.reads(node.draw(128))  # what was gathered before is looked at
    before = node.monitor.channels
    node.reads(node.draw(2 * DAY))
    after = node.monitor.channels

    assert before.residual_scale.squares.tolist() == after.residual_scale.squares.tolist()
    assert before.residual_scale.weight.tolist() == after.residual_scale.weight.tolist()
    assert before.habits.learnt.tolist() == after.habits.learnt.tolist()
    assert before.run_lengths.last.tolist() != after.run_lengths.last.tolist()


def test_a_channel_whose_number_is_held_repeats_nothing():
    """It is silent. One that sends the same number is counted, reading by reading."""
    node = Node().settled()
    rows = node.draw(256)
    rows[:, :2] = rows[0, :2]
    held = np.zeros(rows.shape, dtype=bool)
    held[1:, 0] = True
    node.row += len(rows)
    node.intake.read(rows, node.current, node.model, node.now, held)
    runs = node.monitor.channels.run_lengths.run

    assert [1, 256] == runs[:2].tolist()


def test_the_operating_state_is_all_that_is_learnt():
    """Rows outside it are neither learnt nor scored, nor ever an alarm."""
    condition = Condition.parse("x0 > 7", NAMES)
    node = Node(replace(SETTINGS, learn_when=condition)).settled()
    rows = strayed(node.draw(40))
    rows[:, 0] = 6.9
    rows[::4, 0] = np.nan
    withheld = node.current.counts.withheld

    assert [] == node.reads(rows)
    assert withheld + 40 == node.current.counts.withheld
    assert () == node.monitor.alarms


def test_a_gap_takes_nothing_from_what_is_odd():
    """With two of three channels missing too, a row that is off is over the limit; others not."""
    node = Node().settled()
    rows = node.draw(DAY)
    rows[:, 6:] = np.nan
    node.reads(rows)
    assert ["silent"] == [alarm.cause for alarm in node.monitor.alarms]

    rows = strayed(node.draw(20))
    rows[:, 6:] = np.nan
    node.reads(rows)
    assert 2 == len(node.monitor.alarms)


def restarted(node: Node) -> Node:
    """Return the same node in its next process."""
    again = Node(kept=node.intake.kept)
    again.row, again.rng, again.model = node.row, node.rng, node.model
    return again


def silent(node: Node, rows: int, *channels: int) -> list[Alarm]:
    """Let rows come without these channels; return alarms that are open."""
    gone = node.draw(rows)
    gone[:, channels] = np.nan
    node.reads(gone, block=1)
    return [alarm for alarm in node.monitor.alarms if alarm.is_open]


def test_a_channel_that_dies_is_an_alarm_beside_others():
    """After an hour; it ends when all its channels speak, and withholds nothing."""
    node = Node().settled()
    node.reads(strayed(node.draw(20)))
    assert ["spe"] == [alarm.cause for alarm in silent(node, 6, 2, 5)]

    alarms = silent(node, 1, 2, 5)
    died = next(alarm for alarm in alarms if alarm.cause == "silent")
    assert [("x2", 0.5), ("x5", 0.5)] == list(died.top)
    assert 60.0 * 70 == died.began - (node.now.wall - 4200.0)
    node.reads(node.draw(200))
    assert [] == [alarm for alarm in node.monitor.alarms if alarm.is_open]
    learnt = node.learnt()
    assert 1 == len(silent(node, 100, 2))
    assert learnt + 100 == node.learnt()
    assert 1 == len(silent(node, 1, 2))
    assert [] == silent(node, 1)


@pytest.mark.parametrize("restarts", [False, True])
def test_a_silence_is_compared_with_those_before(restarts):
    """Three times the longest, also before a restart: a plug that is off each night is not dead."""
    node = Node().settled()
    assert [] == silent(node, 6, 3) + silent(node, 1)
    node = restarted(node) if restarts else node
    assert [] == silent(node, 18, 3)
    node = restarted(node) if restarts else node
    assert ["silent"] == [alarm.cause for alarm in silent(node, 1, 3)]


def stays(node: Node, rows: int, level: float) -> list[Alarm]:
    """Let a plug stay at a level; return open alarms about that."""
    came = node.draw(rows)
    came[:, 0] = level + node.rng.normal(0, 0.1, rows)
    node.reads(came, block=3)
    return [each for each in node.monitor.alarms if each.is_open and each.cause == "duty"]


def of_a_fridge(node: Node, cycles: int) -> Node:
    """Let its compressor be off for an hour and on for half an hour, so many times."""
    for _ in range(cycles):
        assert [] == stays(node, 6, 0.1) + stays(node, 3, 8.0)
    return node


@pytest.mark.parametrize("restarts", [False, True])
def test_a_plug_that_stays_on_is_an_alarm_beside_others(restarts):
    """After twice its longest run, which began before; it ends with it, and withholds nothing."""
    node = of_a_fridge(Node().settled(), 64)
    learnt, since = node.learnt(), node.now.wall
    stays(node, 3, 0.1)
    assert [] == stays(node, 5, 8.0)
    node = restarted(node) if restarts else node
    [alarm] = stays(node, 2, 8.0)
    assert (("x0", 1.0),) == alarm.top
    assert 1.9 < alarm.worst < 2.4
    assert since + 1800.0 == alarm.began
    assert (8.0, 0.1) == pytest.approx(alarm.deviations[0][1:], abs=0.2)
    node = restarted(node) if restarts else node
    [later] = stays(node, 5, 8.0)
    assert (alarm.number, 3) == (later.number, round(later.worst))
    assert restarts or learnt + 15 == node.learnt()

    assert [] == stays(node, 1, 0.1)


@pytest.mark.parametrize("accepts", [True, False])
def test_a_verdict_on_a_plug_that_stays_on(accepts):
    """Accepted it is over, and as long a run is no alarm again; rejected it goes on."""
    node = of_a_fridge(Node().settled(), 64)
    [alarm] = stays(node, 8, 8.0)
    node.monitor.apply(DesiredState("n", 1, verdicts=((alarm.number, accepts),)), node.now)
    assert accepts == (stays(node, 1, 8.0) == [])
    of_a_fridge(node, 2)
    stays(node, 6, 0.1)

    assert accepts == (stays(node, 9, 8.0) == [])


@pytest.mark.parametrize("accepts", [True, False])
def test_a_verdict_on_a_silence_and_a_restart(accepts):
    """Accepted it is over, and does not come again while it lasts; a restart keeps it."""
    node = Node().settled()
    [alarm] = silent(node, 7, 3)
    node.monitor.apply(DesiredState("n", 1, verdicts=((alarm.number, accepts),)), node.now)
    again = Node(kept=node.intake.kept)
    again.row, again.model = node.row, node.model

    for each in (node, again):
        still = silent(each, 20, 3)
        assert ([] if accepts else [alarm.number]) == [open_.number for open_ in still]
        assert [] == silent(each, 1)


def test_a_channel_that_never_spoke_or_dies_before_a_model():
    """The first raises no alarm. The second does, although there is no model."""
    node = Node()
    node.model = None
    assert [] == silent(node, DAY - 4, 1) + silent(node, 10, 1, 4) + silent(node, DAY, 1)
    assert [("x4", 1.0)] == [each for alarm in silent(node, 50, 1, 4) for each in alarm.top]


def test_another_schema_begins_anew():
    """Its scores mean something else: what an operator wants and what is told of stays."""
    node = Node().settled()
    node.reads(strayed(node.draw(20)))
    kept = node.intake.kept
    other = NodeMonitor(SETTINGS, Schema(DIM, center="own", half_life=60.0), SUMMARIES, kept)

    assert [False] == [alarm.is_open for alarm in other.alarms]
    assert 0 == other.own.count
    assert 0 == other.maxima.longest
    assert 1 == other.alarm_status(node.now).raised


def test_without_alarms_everything_is_learnt():
    """at_most = "off": nothing is withheld, and nothing is said of alarms."""
    node = Node(replace(SETTINGS, alarms=None)).settled()
    node.reads(strayed(node.draw(50)))

    assert 0 == node.current.counts.withheld
    assert (None, ()) == (node.monitor.alarm_status(node.now), node.monitor.alarms)


def test_how_well_a_channel_is_told_by_the_others_is_known():
    """With readings enough: three causes tell twelve channels, and nothing tells noise."""
    node = Node()
    rows = node.draw(1300)
    node.reads(node.draw(10))
    assert np.isnan(node.monitor.r2).all()
    rows[:, 5] = node.rng.normal(7, 1, 1300)
    rows[-1, 0] = np.nan
    reported = node.reads(rows)

    assert all(each.r2 is None for each in reported[:-1])
    assert np.delete(reported[-1].r2, 5).min() > 0.4
    assert reported[-1].r2[5] < 0.1


def test_what_was_kept_for_vectors_of_another_length_is_not_taken():
    """A record that is damaged, or that nobody could write: it begins anew, and goes on."""
    node = Node().settled()
    kept, short = node.intake.kept, OwnMean.none(3, None)
    for broken in (
        replace(kept, own=short),
        replace(kept, own=None),
        replace(kept, residual_scale=ResidualScale.none(3)),
        replace(kept, reference=node.model, held=short),
    ):
        again = Node(kept=broken)
        assert 5 == len(again.reads(again.draw(50)))


def test_a_fault_that_is_learnt_after_all_is_learnt_as_ordinary_rows():
    """A hundred scales off for three days, and two hours of them withheld: its size is lost."""
    node = Node().settled()
    before = node.current.summary(node.now).parts[0].truncated(RANK)
    node.reads(strayed(node.draw(3 * DAY), by=100.0))
    after = node.current.summary(node.now).parts[0].truncated(RANK)

    assert node.learnt() > 4 * DAY
    assert after.explained_variance[0] < 2 * before.explained_variance[0]
    assert after.energy / after.weight < 1.5 * before.energy / before.weight


@pytest.mark.parametrize("block", [1, 10, 64, 300])
def test_a_fault_within_one_block_is_not_learnt(block):
    """Also where it is over before the block is; but for the rows that raise it."""
    node = Node(PATIENT).settled()
    learnt = node.learnt()
    node.reads(np.concatenate([strayed(node.draw(25)), node.draw(75)]), block)
    (alarm,) = node.monitor.alarms

    assert not alarm.is_open
    assert alarm.withheld == 100 - (node.learnt() - learnt) > 21
    assert node.monitor.own.rows[4] == pytest.approx(7.0, abs=0.5)


def test_one_wild_reading_is_one_reading():
    """Its mean is not moved by it, nor is anything alarmed at afterwards."""
    node = Node().settled()
    rows = node.draw(100)
    rows[50, 4] = 1e9
    node.reads(rows)

    assert node.monitor.own.rows[4] == pytest.approx(7.0, abs=0.5)
    assert () == node.monitor.alarms


@pytest.mark.parametrize("value", [1e13, 1e38, 1e308, -1e308, np.inf, -np.inf])
def test_a_sensor_that_reads_what_is_no_reading_raises_an_alarm(value):
    """From the row on at which any fault would; rows are counted as too large, and never learnt."""
    node = Node().settled()
    learnt, mean, scores = node.learnt(), node.monitor.own, node.intake.scores
    rows = node.draw(10)
    rows[:, 4] = value
    reported = node.reads(rows)
    alarm = node.monitor.alarms[0]

    assert [False] * 4 + [True] * 6 == reported[0].decision.alarmed.tolist()
    assert "x4" == alarm.top[0][0]
    assert np.isfinite(reported[0].scores.spe).all()
    assert (learnt, 10) == (node.learnt(), node.current.account.too_large)
    assert 10 == node.current.counts.withheld
    assert mean.count == node.monitor.own.count
    assert scores.spe.n == node.intake.scores.spe.n


@pytest.mark.parametrize("value", [1e38, np.inf])
def test_one_such_reading_changes_nothing_of_what_is_usual(value):
    """It raises no alarm, as no single row does, and what is known of channels stays."""
    clean, node = Node().settled(), Node().settled()
    rows = node.draw(200)
    clean.reads(rows)
    rows[100, 4] = value
    node.reads(rows)

    assert () == node.monitor.alarms
    assert (1, 0) == (node.current.account.too_large, clean.current.account.too_large)
    assert clean.learnt() - 1 == node.learnt()
    assert np.allclose(clean.monitor.own.rows, node.monitor.own.rows, rtol=0.01)


def test_before_a_model_such_rows_are_left_out():
    """Nothing can judge them yet: they are counted, and the others are learnt."""
    node, rows = Node(), Node().draw(30)
    node.model = None
    rows[7, 4], rows[8, 5] = np.inf, 1e15
    node.reads(rows)

    assert (28, 2) == (node.learnt(), node.current.account.too_large)


def test_a_node_that_is_new_is_learnt_as_it_is():
    """Until its own mean is known nobody can say what is far from it."""
    node = Node()
    node.model = fleet(limit=12.0)
    node.reads(node.draw(10) + 40.0)
    summary = node.current.summary(node.now)

    assert summary.mean == pytest.approx(47.0, abs=2.0)


def test_another_name_does_not_tell_of_the_alarms_of_the_one_before():
    """A state file under a new name: what it measured stays, what it said does not."""
    node = Node().settled()
    node.reads(strayed(node.draw(20)))
    again = Node(replace(SETTINGS, node="m"), node.intake.kept)
    again.reads(again.draw(10))

    assert ((), "m") == (again.monitor.alarms, again.monitor.desired.node)


def test_an_alarm_withholds_without_a_model_as_well():
    """Its record was lost: whatever comes is not learnt, for nobody can look at it."""
    node = Node(PATIENT).settled()
    node.reads(strayed(node.draw(20)))
    again = Node(PATIENT, node.intake.kept)
    again.model = None
    again.reads(strayed(again.draw(20)))

    assert (0, 20) == (again.learnt(), again.current.counts.withheld)


def test_the_guilty_channel_is_named_to_the_end():
    """Rows that are calm again, and take their time to be, say nothing of who was to blame."""
    node = Node(PATIENT).settled()
    node.reads(np.concatenate([strayed(node.draw(30)), node.draw(120)]))
    (alarm,) = node.monitor.alarms

    assert not alarm.is_open
    assert "x4" == alarm.top[0][0]
    assert alarm.top[0][1] > 0.6


@pytest.mark.parametrize("accepts", [True, False])
def test_a_channel_that_stands_still_somewhere_else_is_not_stuck(accepts):
    """A set point was changed: from then on the others predict it at its new level."""
    node, still = Node(), 3.0
    node.draw = lambda n, draw=node.draw: draw(n) * VARIES + still * ~VARIES
    node.model = fleet(limit=1e9, still=True)
    node.reads(node.draw(2 * DAY))
    node.model = fleet(limit=12.0, still=True)
    node.reads(node.draw(6 * DAY))
    assert () == node.monitor.alarms
    still = 12.0
    node.reads(node.draw(20))
    if accepts:
        verdicts = ((node.monitor.alarms[0].number, True),)
        node.monitor.apply(DesiredState("n", 1, verdicts=verdicts), node.now)
    node.reads(node.draw(4 * DAY))

    assert ["x11"] == [alarm.top[0][0] for alarm in node.monitor.alarms]
    assert (accepts, False) == (not node.monitor.alarms[0].settled, node.monitor.alarms[0].is_open)


def test_a_fleet_that_stood_still_raises_no_alarm_when_it_starts():
    """A model in which nothing varies says nothing of readings that do: they are learnt."""
    node = Node()
    learner = SUMMARIES.learner(SCHEMA)
    learner.learn(np.full((4000, DIM), 7.0), np.full((4000, DIM), 7.0))
    node.model = replace(fleet(limit=1e-271), summary=learner.summary())
    node.reads(np.full((2 * DAY, DIM), 7.0))
    node.reads(node.draw(DAY))

    status = node.intake.alarm_status(node.now)
    assert ((), "model") == (node.monitor.alarms, status.waiting.what)
    assert 3 * DAY == node.learnt()
    node.model = fleet(limit=12.0)
    node.reads(node.draw(DAY))
    node.reads(strayed(node.draw(DAY)))
    assert ["spe"] == [alarm.cause for alarm in node.monitor.alarms]


def test_a_rate_of_rows_is_promised_soon_after_a_restart():
    """How long a row is follows from the clock again, and no other model has to come."""
    settings = replace(SETTINGS, alarms=AlarmSettings(at_most_per_row=1e-4))
    node = Node(settings)
    node.reads(node.draw(2 * DAY), block=5)
    node.model = fleet(limit=12.0)
    node.reads(node.draw(20), block=5)
    assert node.monitor.detector.limits.promised
    again = Node(settings, node.intake.kept)
    again.model, again.row = node.model, node.row
    again.reads(again.draw(20), block=5)

    assert again.monitor.detector.row_s == pytest.approx(600.0)
    assert again.monitor.detector.limits.promised
    again.reads(strayed(again.draw(20)), block=5)
    assert not again.monitor.alarms[0].provisional


@pytest.mark.parametrize("block", [1, 4, 10, 40])
def test_a_mean_is_not_of_values_that_were_filled_before_it_was_known(block):
    """What the fleet would read here says nothing: where a channel stands still, it is far off."""
    node = Node()
    rows = node.draw(40)
    rows[:, -1] = 7.0
    rows[[0, 1, 2, 5], -1] = np.nan
    node.reads(rows, block)

    assert node.monitor.own.rows[-1] == pytest.approx(7.0, abs=1e-9)
    assert node.monitor.own.rows[:-1] == pytest.approx(rows[:, :-1].mean(axis=0), abs=0.01)


def test_the_newest_score_is_above_its_limit_where_an_alarm_begins():
    """And nowhere else. Without limits it has no share, and without rows there is none."""
    node = Node()
    node.intake.monitor_for(node.current)
    assert newest_score(node.monitor) is None
    node.model = replace(node.model, maxima=None)
    node.reads(node.draw(30))
    before = newest_score(node.monitor)
    assert before is not None
    assert before.share is None
    node.settled()
    rows = node.draw(60)
    rows[20:40, 3] += 30.0
    began = 0
    for row in rows:
        was_open = any(each.is_open for each in node.intake.alarms)
        node.reads(row[None])
        newest = newest_score(node.monitor)
        assert newest is not None
        assert newest.share is not None
        if not was_open:
            begins = any(each.is_open for each in node.intake.alarms)
            began += begins
            assert begins == (newest.share > 1)
    assert 1 == began


def test_the_trail_of_scores_has_the_share_of_each_row():
    """Rows of ten minutes: a level for each, and nothing between; without limits no share."""
    node = Node()
    node.model = replace(node.model, maxima=None)
    node.reads(node.draw(3), block=1)
    assert [UNLIMITED, *9 * [NOTHING], UNLIMITED, *9 * [NOTHING], UNLIMITED] == list(
        node.intake.trail.levels
    )
    node.settled()
    rows = node.draw(40)
    rows[20:, 3] += 30.0
    for row in rows:
        node.reads(row[None])
        newest = newest_score(node.monitor)
        assert newest is not None
        if not node.monitor.withholds:  # the first row of an alarm may freeze the limits
            assert level_of(newest.share) == node.intake.trail.levels[-1]
        assert int(node.now.wall // 60) == node.intake.trail.last

    assert node.intake.trail.levels[-1] > ONE


def test_rows_that_are_not_scored_have_no_share():
    """Those before the first model, and those of a node that raises no alarms; gaps are no rows."""
    early, quiet, empty_handed = Node(), Node(replace(SETTINGS, alarms=None)), Node()
    early.model = None
    for node in (early, quiet):
        node.reads(node.draw(3))
    empty_handed.reads(np.full((3, DIM), np.nan))

    assert bytes([UNLIMITED]) == early.intake.trail.levels == quiet.intake.trail.levels
    assert NO_TRAIL == empty_handed.intake.trail
