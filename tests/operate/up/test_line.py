"""What a line on a machine says, to a person and to a program."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from submerge.client.monitor import NewestScore
from submerge.protocol.alarm_status import Alarm, Deviation
from submerge_operate.up.line import BoxState, json_of, text_of

AT = 1767225600.0
UNITS = {"flow": "l/min", "heat": ""}
ALARM = Alarm(
    *("desk", 1, AT - 60, AT, 0.0, 4.0, "distance", (("flow", 0.8), ("heat", 0.2)), 7),
    deviations=(Deviation("flow", 4.204, 6.1), Deviation("heat", 30.0, 29.0)),
)
SCORED = BoxState(1204, 1180, 24, score=NewestScore("distance", 4.2, 10.0))
OVER = replace(ALARM, ended=AT - 20.0)


@pytest.fixture(autouse=True)
def _zone(monkeypatch):
    """Local time is another than UTC."""
    monkeypatch.setenv("TZ", "XYZ-2")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def text(state: BoxState, occasion="minute") -> str:
    return text_of(state, AT, occasion, units=UNITS, needed=1000)


WORDS = [
    (BoxState(71, 71, 0, measured=71), "measuring the scale of each channel: 71 of 1,000 rows"),
    (
        BoxState(71, 71, 0, measured=71, ready_in_s=930.0),
        "measuring the scale of each channel: 71 of 1,000 rows, about 16 min more; no alarm",
    ),
    (
        BoxState(62, 0, 62, 0, waits_on=("a/heat",), absent=("a/heat",), never=("a/heat",)),
        ": 0 of 1,000 rows, waiting for a/heat, which has no value yet; no alarm",
    ),
    (
        BoxState(62, 0, 62, 9, waits_on=("a", "b", "c"), absent=("a", "b", "c")),
        ": 9 of 1,000 rows, waiting for a, b (and 1 more), which have no value; no alarm",
    ),
    (
        BoxState(62, 0, 62, absent=("a/heat", "b/heat"), never=("b/heat",)),
        "62 withheld; no value yet of b/heat; no value of a/heat; no score",
    ),
    (BoxState(71, 71, 0), "71 rows read, 71 learnt; no score yet: too few scores so far; no alarm"),
    (
        BoxState(71, 71, 0, waits_for="waiting for its first model"),
        "71 rows read, 71 learnt; no score yet: waiting for its first model; no alarm",
    ),
    (
        BoxState(8, 8, 0, waits_for="waiting for its first model", ready_in_s=170.0),
        "8 rows read, 8 learnt; no score yet: first scores in about 3 min; no alarm",
    ),
    (BoxState(1, 1, 0), "  1 row read, 1 learnt; no score"),
    (
        replace(SCORED, score=NewestScore("spe", 1e-4, 10.0)),
        "24 withheld; score below 0.01 of its limit; no alarm",
    ),
    (
        BoxState(62, 0, 62, absent=("a/heat", "b/heat", "c/heat")),
        "62 rows read, 0 learnt, 62 withheld; no value of a/heat, b/heat (and 1 more); no score",
    ),
    (replace(SCORED, quiet_s=300.0), "24 withheld; no row for 5 min; score"),
    (BoxState(0, 0, 0, quiet_s=60.0, advice="why?"), "0 learnt; no row yet, for 60 s (why?); no"),
    (SCORED, "1,204 rows read, 1,180 learnt, 24 withheld; score 0.42 of its limit; no alarm"),
    (
        replace(SCORED, score=NewestScore("spe", 4.2, 0.0), armed_in_s=3 * 86400.0),
        "score 4.2, no limits yet: in about 3 d; no alarm",
    ),
    (
        replace(SCORED, provisional=True, armed_in_s=3 * 86400.0),
        "score 0.42 of its limit (provisional, for 3 d more); no alarm",
    ),
    (
        replace(SCORED, alarms=(ALARM,)),
        "  ALARM since 01:59:00: flow 4.2 l/min (expected 6.1 l/min), also heat; 1,204",
    ),
    (
        replace(SCORED, alarms=(replace(ALARM, began=AT - 86400, provisional=True),)),
        "  provisional alarm since 2025-12-31 02:00:00: flow",
    ),
    (
        replace(SCORED, alarms=(replace(ALARM, cause="stuck", top=(("flow", 1.0),)),)),
        ": flow stuck at 4.2 l/min (expected 6.1 l/min); 1,204 rows",
    ),
    (
        replace(SCORED, alarms=(replace(ALARM, cause="duty", worst=4.0, top=(("flow", 1.0),)),)),
        ": flow low at 4.2 l/min, 4 times its longest run; 1,204 rows",
    ),
    (replace(SCORED, alarms=(replace(ALARM, deviations=()),)), "01:59:00: flow, heat; 1,204"),
    (replace(SCORED, alarms=(OVER,)), "; no alarm"),
]


@pytest.mark.parametrize(("state", "words"), WORDS)
def test_a_line_for_a_person(state, words):
    """In local time, and it never says that something is wrong where nothing is."""
    line = text(state)
    assert line.startswith("2026-01-01 02:00:00  ")
    assert words in line
    assert "lost" not in line
    assert "\n" not in line


def test_the_end_of_an_alarm_is_said_once():
    state = replace(SCORED, alarms=(OVER,))
    assert text(state, "alarm ended").endswith("; alarm over after 40 s: flow, heat")
    assert text(state).endswith("; no alarm")


def test_an_alarm_names_who_shares_the_blame_and_its_end_those_of_its_start():
    """A second channel with a tenth of the first one's blame, or more."""
    faint = replace(OVER, top=(("flow", 0.95), ("heat", 0.05)))
    other = replace(OVER, first=(("heat", 0.9),))

    assert text(replace(SCORED, alarms=(faint,)), "alarm ended").endswith("over after 40 s: flow")
    assert text(replace(SCORED, alarms=(other,)), "alarm ended").endswith("over after 40 s: heat")


def test_an_end_before_the_scale_is_known_loses_nothing_and_says_so():
    state = BoxState(71, 71, 0, measured=71)
    assert "71 of 1,000 rows; the next start goes on from them; no" in text(state, "end")


@pytest.mark.parametrize("state", [state for state, _ in WORDS])
def test_a_line_for_a_program_is_one_object(state):
    line = json_of(state, AT, "minute", units=UNITS, needed=1000)
    fields = json.loads(line)
    assert "\n" not in line
    assert (AT, "minute", state.rows) == (fields["at"], fields["why"], fields["rows"])
    assert len(state.open) == len(fields["alarms"])
    if state is SCORED:
        assert 0.42 == fields["share_of_limit"]
    said = ("ready_in_s", state.ready_in_s), ("waits_on", state.waits_on), ("never", state.never)
    for name, value in said:
        # What is unknown, or none, is null or left out.
        assert (list(value) if isinstance(value, tuple) else value) in (fields.get(name), -1, [])
    for alarm in fields["alarms"]:
        assert "desk-1" == alarm["id"]
        for each in alarm["channels"]:
            assert UNITS[each["channel"]] == each["unit"]


@pytest.mark.parametrize(
    ("channels", "says"),
    [
        (1, "s0 silent"),
        (2, "s0, s1 silent"),
        (3, "s0, s1 and 1 more silent"),
        (5, "s0, s1 and 3 more silent"),
    ],
)
def test_channels_that_fell_silent_together_are_all_counted(channels, says):
    """Two are named, and an alarm knows three names."""
    top = tuple((f"s{j}", 1 / channels) for j in range(min(channels, 3)))
    silent = replace(ALARM, cause="silent", top=top, deviations=())

    assert f": {says};" in text(replace(SCORED, alarms=(silent,)))
