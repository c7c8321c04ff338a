"""Alarms, peaks and wishes on their way: what is cut, what is forgiven, and what is not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from submerge import PeerError, Schema
from submerge.protocol.alarm_status import (
    MOST_ALARMS,
    REMEMBERED,
    STATES,
    Alarm,
    AlarmStatus,
    Deviation,
)
from submerge.protocol.desired_state import MOST_VERDICTS, DesiredState
from submerge.protocol.machine import Reading, SetDesired
from submerge.protocol.messages import ScoreSketches
from submerge.protocol.names import LAST_SECOND
from submerge.protocol.summaries import Subspaces
from submerge.stats.block_maxima import NONE, BlockMaxima
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from submerge.stats.statistic import KINDS
from submerge_proto.wire import alarms, codec, fields, forms
from support.alarm_statuses import (
    ALARM,
    ALARM_STATUS,
    FINELY,
    MAXIMA,
    OF_READINGS,
    WISH,
    most_peaks,
    most_vigil,
)
from support.bombs import field
from support.nodes import GROUP
from support.wire import ANSWER, OF_KERNELS, SKETCH, a_model, a_report, form_of, reported, travelled
from support.wired import WiredTable

SITE = b"f" * 16
"""The fence that an aggregator has, and a client has not."""


def an_alarm(**fields: object) -> Alarm:
    """What arrives of an alarm."""
    alarm_status = AlarmStatus(AlarmStatus.at("alarm"), (replace(ALARM, **fields),), 1)
    (seen,) = travelled(a_report(alarm_status=alarm_status)).alarm_status.alarms
    return seen


# -- what a later version may say --------------------------------------------------------


def test_a_cause_that_is_not_known_is_no_reason_to_miss_an_alarm():
    """It is read as SPE: readings are odd. What a person made of it, as nothing yet."""
    form = forms.report(a_report())
    form.alarm_status.alarms[0].cause, form.alarm_status.alarms[1].verdict = 99, 99
    first, second = codec.decode("report", form.SerializeToString()).alarm_status.alarms

    assert ("spe", "") == (first.cause, second.verdict)
    assert replace(ALARM, cause="spe") == first


ONSET = (("b", 0.5), ("a", 0.25))


def test_a_deviation_is_of_the_channel_at_its_place():
    """The name is there once; one of another channel is named."""
    off = (Deviation("a", 1.5, -2.5), Deviation("c", 0.0, 1e99))
    seen = an_alarm(top=(("a", 0.75), ("b", 0.25)), first=ONSET, deviations=off, settled=True)
    assert (off, ONSET, True) == (seen.deviations, seen.first, seen.settled)

    form = alarms.ALARM.made(replace(ALARM, top=(("a", 1.0),), deviations=off))
    assert ["", "c"] == [each.channel for each in form.deviations]


def test_values_without_bounds_are_cut():
    """An overflow at a client does not cost its report; what is said is large."""
    (seen,) = an_alarm(top=(("a", 1.0),), deviations=(Deviation("a", math.inf, 1.0),)).deviations

    assert (1e100, 1.0) == (seen.value, seen.expected)


@pytest.mark.parametrize(
    ("letter", "left"), [("ab", (2, 1)), (12 * "\U0001f600", (0, 1)), (25 * "\U0001f600", (0, 0))]
)
def test_an_alarm_with_long_names_leaves_out_its_onset_first(letter, left):
    """It is never larger than `MOST_BYTES`, for which a report has room."""
    names = [letter, letter + letter, letter + "c"] if len(letter) < 25 else 3 * [letter]
    top = tuple((name, 0.25) for name in names)
    long = replace(ALARM, node="n" * 64, number=2**62, version=2**63 - 1, withheld=2**53)
    long = replace(long, top=top, first=top[1:], settled=True, provisional=True)
    form = alarms.ALARM.made(replace(long, deviations=(Deviation(names[0], 1.0, 2.0),)))

    assert left == (len(form.first), len(form.deviations))
    assert form.ByteSize() <= alarms.MOST_BYTES


def test_an_alarm_of_an_earlier_version_is_the_same_bytes():
    """Digests that an earlier version kept hold: what is new counts where it is there."""
    new = replace(ALARM, first=ONSET, deviations=(Deviation("a", 1.0, 2.0),), settled=True)
    parts_of_it = [replace(new, **{name: getattr(ALARM, name)}) for name in NEWER]

    assert ALARM.packed + b"first" == new.packed[: len(ALARM.packed) + 5]
    assert 4 == len({each.packed for each in (new, *parts_of_it)})
    assert 4 == len({replace(each, ended=5.0).revision for each in (new, *parts_of_it)})


NEWER = ("first", "deviations", "settled")


def test_a_node_in_a_state_to_come_is_in_none_that_is_known():
    """States are fields, and a field that is not known is passed over."""
    form = forms.report(a_report())
    form.alarm_status.states.Clear()
    form.alarm_status.states.MergeFromString(b"\x30\x01")  # field 6: 1

    assert (0,) * len(STATES) == codec.decode(
        "report", form.SerializeToString()
    ).alarm_status.states


# -- what is cut -----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        ("bearing.heat", "bearing.heat"),
        ("x" * 50, "x" * 40),
        ("red \x1b[31m", "red ?[31m"),
        ("lone \ud800", "lone ?"),
        ("\u20ac" * 50, "\u20ac" * 33),  # of three bytes
        ("\U0001f600" * 50, "\U0001f600" * 25),  # of four
    ],
)
def test_a_channel_is_named_as_far_as_there_is_room(channel, expected):
    """40 letters, and 100 bytes; nothing that moves a cursor, whoever wrote it."""
    assert ((expected, 0.5),) == an_alarm(top=((channel, 0.5),)).top
    if channel.isprintable():
        form = forms.report(a_report())
        form.alarm_status.alarms[0].top[0].channel = channel
        (first, _) = codec.decode("report", form.SerializeToString()).alarm_status.alarms
        assert expected == first.top[0][0]


@pytest.mark.parametrize(
    ("wall", "shown"), [(-5.0, 0.0), (1e300, float(LAST_SECOND)), (math.inf, LAST_SECOND)]
)
def test_a_clock_may_lie_and_times_can_be_shown_all_the_same(wall, shown):
    """From 1970 to 9999; and an alarm that is over stays so, whenever it was."""
    seen = an_alarm(began=wall, peaked=wall, ended=wall)

    assert (shown, shown) == (seen.began, seen.peaked)
    assert not seen.is_open
    assert max(shown, math.ulp(0.0)) == seen.ended


def test_a_score_over_a_limit_of_nothing_can_be_told():
    """It is beyond all numbers, and the highest there is does."""
    assert fields.WORST == an_alarm(worst=math.inf).worst


def test_sums_are_told_as_far_as_they_are_believed():
    """What a site adds up of liars is taken above, and so is what comes of that."""
    much = AlarmStatus((2**60,) * 5, (), 2**60, 1e300, math.inf, 2**80, 2**80, 1e300, 2**63)
    seen = travelled(a_report(fence=SITE, alarm_status=much)).alarm_status

    assert ((2**40,) * 5, 2**40) == (seen.states, seen.open)
    assert (2.0**62,) * 3 == (seen.watched_s, seen.allowed, seen.armed_in_s)
    assert (2**62,) * 3 == (seen.raised, seen.confirmed, seen.desired)


def test_how_long_a_node_was_silent_goes_with_its_alarms():
    """Nothing goes if none was: a report is then the same bytes as before."""
    alarms = replace(ALARM, node="c"), replace(ALARM, node="d"), replace(ALARM, node="c", number=7)
    status = replace(ALARM_STATUS, alarms=alarms, silent=(("c", 901), ("d", 2**60)))
    seen = travelled(a_report(fence=SITE, alarm_status=status)).alarm_status

    assert (("c", 901), ("d", 2**40)) == seen.silent
    assert () == travelled(a_report(fence=SITE)).alarm_status.silent


def test_silences_of_other_alarms_are_refused():
    form = forms.report(a_report(fence=SITE))
    form.alarm_status.silent_s.append(5)

    with pytest.raises(codec.MessageRefused, match=r"a silence for each of 2 alarms, got 1"):
        codec.decode("report", form.SerializeToString())


def test_more_alarms_than_can_be_told_are_told_in_part():
    """The first 64: those that are open go first."""
    many = tuple(replace(ALARM, number=i) for i in range(100))
    seen = travelled(
        a_report(fence=SITE, alarm_status=replace(ALARM_STATUS, alarms=many))
    ).alarm_status

    assert many[:MOST_ALARMS] == seen.alarms


def test_more_peaks_than_are_believed_are_thinned():
    """Limits stay where they were, to a bucket, at the grain that peaks have."""
    crowd = QuantileSketch(FINE.level, tuple((i, n << 58) for i, n in FINELY.bins), FINE)
    maxima = BlockMaxima(crowd, FINELY, empty(FINE), 2**70, crowd)
    seen = travelled(a_report(scores=ScoreSketches(SKETCH, SKETCH, None, maxima))).scores.maxima

    assert 0 < seen.spe.n <= 2**53
    assert [i for i, _ in FINELY.bins] == [i for i, _ in seen.spe.bins]
    assert (FINE, seen.spe, FINELY, 2**62) == (seen.spe.grain, seen.channel, seen.t2, seen.longest)


def test_a_number_beyond_belief_is_told_as_the_last_that_is_not():
    """Of a wish, and of the alarm that it judges: the child is not to refuse the answer."""
    verdicts = tuple((2**63 + i, True) for i in range(12))
    (seen,) = travelled(
        ANSWER._replace(desired_states=(DesiredState("c", 2**80, False, verdicts),))
    ).desired_states

    assert DesiredState("c", 2**62, False, ((2**62, True),) * MOST_VERDICTS) == seen


# -- what a group has not ---------------------------------------------------------------


def test_a_linear_group_has_no_peaks_of_two_residuals():
    """As it has no such limits: a child that tells of them costs nobody the model."""
    assert MAXIMA == travelled(a_model(maxima=OF_READINGS)).maxima
    assert OF_READINGS == travelled(OF_KERNELS["model"]).maxima
    unread = a_model(maxima=OF_READINGS, summary=None, schema=b"a form to come", limits=None)
    assert OF_READINGS == travelled(unread).maxima


def test_peaks_of_nothing_weigh_next_to_nothing():
    """An empty sketch is not told."""
    with_none = forms.report(a_report(scores=ScoreSketches(SKETCH, SKETCH, None, NONE)))
    without = forms.report(a_report(scores=ScoreSketches(SKETCH, SKETCH)))

    assert 2 == with_none.ByteSize() - without.ByteSize()
    assert NONE == codec.decode("report", with_none.SerializeToString()).scores.maxima


def test_who_raises_no_alarms_says_what_was_said_before_there_were_any():
    """Nodes from before read it, and write the same."""
    report = forms.report(a_report(alarm_status=None, scores=ScoreSketches(SKETCH, SKETCH)))
    model = forms.MODEL.made(a_model(maxima=None))
    answer = forms.ANSWER.made(ANSWER._replace(desired_states=()))

    assert not report.HasField("alarm_status")
    assert not report.scores.HasField("maxima")
    assert not model.HasField("maxima")
    assert not answer.desired_states


# -- what is refused, and as what -----------------------------------------------------------


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["report", "model"])
def test_a_wrong_sketch_of_peaks_is_a_wrong_sketch(name, kind):
    """Whoever counts what is refused, and why, finds it among the others."""
    form, message = form_of(name)
    maxima = message.scores.maxima if name == "report" else message.maxima
    setattr(maxima, kind, b"\0\x03\0\x01")
    with pytest.raises(PeerError) as caught:
        codec.decode(codec.kind_of(OF_KERNELS[name]), form.SerializeToString())

    assert "sketch" == caught.value.kind


def test_a_client_speaks_of_its_own_alarms():
    """Or one that has been broken into could raise alarms of all the others."""
    other = replace(ALARM_STATUS, alarms=(replace(ALARM, node="press-4"),))
    with pytest.raises(PeerError, match="alarms of its own, got one of press-4") as caught:
        travelled(a_report(alarm_status=other))

    assert "name" == caught.value.kind
    assert other == travelled(a_report(alarm_status=other, fence=SITE)).alarm_status


# -- sizes ------------------------------------------------------------------------------


@pytest.mark.parametrize("above", [False, True])
def test_the_most_that_can_be_told_is_within_bounds(above):
    """64 alarms with three channels each, or nine: looked through to the end."""
    report = a_report(
        alarm_status=most_vigil("press-3", above=above),
        scores=ScoreSketches(SKETCH, SKETCH, SKETCH, most_peaks(2**53, linear=True, above=above)),
        fence=SITE if above else b"",
    )
    data = codec.encode(report) + field(3000, b"x" * 9000)
    seen = codec.decode("report", data)

    assert (MOST_ALARMS if above else 1 + REMEMBERED) == len(seen.alarm_status.alarms)
    assert reported(report.scores) == reported(seen.scores)


def test_no_alarm_is_larger_than_was_reckoned():
    """A name of 64 letters, three channels of 100 bytes, every number at its largest."""
    (first, *_) = most_vigil("n" * 64, above=False).alarms
    alone, both = (
        len(codec.encode(a_report(alarm_status=AlarmStatus((0,) * 5, (first,) * n), fence=SITE)))
        for n in (1, 2)
    )

    assert 481 == both - alone


def test_the_most_wishes_are_within_bounds():
    """Of 16 nodes, with 8 verdicts each."""
    verdicts = tuple((2**62 - i, True) for i in range(MOST_VERDICTS))
    desired_states = tuple(
        DesiredState("n" * 62 + f"{i:02}", 2**62, True, verdicts) for i in range(16)
    )
    data = codec.encode(ANSWER._replace(desired_states=desired_states)) + field(3000, b"x" * 9000)

    assert desired_states == codec.decode("answer", data).desired_states
    assert WISH == alarms.DESIRED_STATE.read(alarms.DESIRED_STATE.made(WISH))


# -- nodes ------------------------------------------------------------------------------


@pytest.fixture
def table():
    """A root `r`, a site `a` below it, and a client `c` below that: of bytes, and of disks."""
    table = WiredTable(Subspaces(2), Schema.anonymous(3))
    table.root("r")
    table.aggregator("a", under="r")
    table.client("c", under="a")
    table.passes(60)
    reads(table)
    return table


def reads(table):
    """Let the client read something, and time pass."""
    for _ in range(3):
        table.step("c", Reading(np.random.default_rng(0).standard_normal((30, 3))))
        table.passes(400)


def monitor(table):
    """Return what the client looks with."""
    return table.hosts["c"].node._ingest.kept


def test_what_an_operator_wants_arrives_as_bytes_and_stays(table):
    """From the root to a client two levels below; and over a restart of all of them."""
    table.step("r", SetDesired(GROUP, "c", paused=True, verdict=(7, False)))
    reads(table)
    desired = monitor(table).desired

    assert (True, ((7, False),)) == (desired.paused, desired.verdicts)
    for label in "car":
        table.restarts(label)
    assert (True, desired.verdicts) == (
        monitor(table).desired.paused,
        monitor(table).desired.verdicts,
    )
    reads(table)
    assert desired == monitor(table).desired
    (row,) = (row for (node, _), row in table.hosts["r"].ledger.rows.items() if node == "a")
    said = table.hosts["r"].node._groups[GROUP].desired_states.by_node["c"].number
    assert (1, said) == (row.report.alarm_status.states[3], row.report.alarm_status.desired)


def test_a_store_from_before_there_were_alarms_is_gone_on_with(table):
    """Nothing of it is given up: what is not there was never said."""
    before = [table.hosts[label].node.incarnation for label in "ra"]
    for label in "cra":
        disk = table.hosts[label].disk
        for key in [key for key in disk if key[0] in ("wishes", "heard", "lookout")]:
            del disk[key]
        table.restarts(label)
    reads(table)

    assert before == [table.hosts[label].node.incarnation for label in "ra"]
    assert 0 == monitor(table).desired.number
    assert 180 == table.hosts["r"].ledger.counts().learnt
