"""[learn] and [alarms]: what is learnt and judged at all, and when that is an alarm."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from msgspec.structs import asdict

from submerge import SAPCA, Schema, UsageError
from submerge.protocol.settings import AlarmSettings, ClientSettings
from submerge_client.config.alarms import AlarmsConfig, LearnConfig
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.sample import sample
from submerge_client.config.summary import LearntSummary
from submerge_client.config.tomlfile import decoded
from submerge_client.trial import Listened, _memory_line, trial_lines
from support.samples import variants

SAMPLE = sample(ClientConfig)

DAY = 86400.0


def client(**sections) -> ClientConfig:
    """A client of two channels and their past."""
    plain = {
        **dict.fromkeys(("node", "group", "state"), "c"),
        "parent": "root",
        "uplink": {"url": "grpc://parent", "insecure": True},
        "schema": {"channels": ["rpm", "motor temp [°C]"], "lags": 2},
        "summary": {"rank": 2},
        "sensor": {"kind": "ndjson"},
    }
    return decoded({**plain, **sections}, ClientConfig)


def refused(**sections) -> str:
    """The one line that refuses them."""
    with pytest.raises(UsageError) as error:
        client(**sections)
    return str(error.value)


def test_left_out_it_is_as_the_node_has_it():
    """One false alarm a week, and every row counts."""
    settings = client().settings

    assert AlarmSettings() == settings.alarms
    assert settings.learn_when is None
    assert AlarmSettings() == ClientSettings("c", "g", "root").alarms


def test_what_the_sample_shows_is_what_holds_without_it():
    """But for a condition, and a row's seconds, which have no value of their own."""
    tables = [table for table in variants(SAMPLE) if "settle" in table.get("alarms", ())]
    (shown,) = [dict(table["alarms"]) for table in tables]
    (learn,) = [dict(table["learn"]) for table in variants(SAMPLE) if table.get("learn")]
    del shown["period_s"], learn["when"]

    assert {**asdict(AlarmsConfig()), **shown} == asdict(AlarmsConfig())
    assert {**asdict(LearnConfig()), **learn} == asdict(LearnConfig())


def test_every_setting_goes_through_to_the_node():
    """In seconds, and false alarms a second."""
    config = client(
        alarms={"at_most": "2 false per day", "settle": "12h", "period_s": 60},
        learn={"max_withheld": "7d"},
    )
    expected = AlarmSettings(
        at_most_per_s=2 / DAY,
        settle_s=DAY / 2,
        max_withheld_s=7 * DAY,
        period_s=60.0,
    )
    by_rows = client(alarms={"at_most": "per 10000 rows"}).settings.alarms
    same = [
        field.name
        for field in dataclasses.fields(AlarmSettings)
        if getattr(expected, field.name) == getattr(AlarmSettings(), field.name)
    ]

    assert expected == config.settings.alarms
    assert AlarmSettings(at_most_per_s=0.0, at_most_per_row=1e-4) == by_rows
    # Constants, and the other rate; each other one is set to something else.
    assert ["after", "of", "at_most_per_row"] == same


@pytest.mark.parametrize(
    ("sensor", "alarms", "period_s"),
    [
        ({"kind": "host", "period_s": 5}, {}, 5.0),
        ({"kind": "mqtt", "url": "mqtts://b", "topic": "{channel}", "period_s": 7}, {}, 7.0),
        ({"kind": "host", "period_s": 5}, {"period_s": 3600}, 3600.0),
        ({"kind": "ndjson"}, {}, 0.0),
        ({"kind": "file", "paths": ["x.csv"]}, {"period_s": 60}, 60.0),
    ],
)
def test_a_row_stands_for_the_sensors_period(sensor, alarms, period_s):
    """Unless [alarms] has another; a sensor without a period leaves it to the clock."""
    assert period_s == client(sensor=sensor, alarms=alarms).settings.alarms.period_s


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("1 false per hour", 3600.0),
        ("1 false per day", DAY),
        ("1 false per week", 7 * DAY),
        (" 2  false per month", 365 / 24 * DAY),
        ("0.5 false per year", 730 * DAY),
        ("1 false per 8h", DAY / 3),
        ("per 2d", 2 * DAY),
    ],
)
def test_a_rate_is_read(text, seconds):
    """Seconds from one false alarm to the next, on average."""
    often, by_rows = AlarmsConfig(at_most=text).often

    assert 1 / seconds == pytest.approx(often, rel=1e-15)
    assert not by_rows


@pytest.mark.parametrize(
    "text", ["1 false per 10000 rows", "per 10000 rows", "2 false per 20000 rows"]
)
def test_a_rate_of_rows_is_read(text):
    """Rows from one false alarm to the next, on average, whatever time a row stands for."""
    assert (1e-4, True) == AlarmsConfig(at_most=text).often


def test_alarms_can_be_off():
    """Nothing is then raised, and nothing withheld."""
    assert client(alarms={"at_most": "off"}).settings.alarms is None


def test_a_condition_is_of_the_vector():
    """Its newest reading by the channel's name, and those before by theirs."""
    when = client(learn={"when": '"motor temp" < 90 and rpm-1 > 3'}).settings.learn_when

    assert '"motor temp" < 90 and rpm-1 > 3' == str(when)
    assert [True] == when.holds(np.array([[0.0, 80.0, 4.0, 99.0]])).tolist()


GRAMMAR = 'expected "NUMBER false per hour|day|week|month|year, 8h or 10000 rows", or "off", got'


@pytest.mark.parametrize(
    ("section", "settings", "message"),
    [
        ("alarms", {"at_most": "2 per day"}, f'at_most: {GRAMMAR} "2 per day"'),
        ("alarms", {"at_most": "1 false per minute"}, f'at_most: {GRAMMAR} "1 false per minute"'),
        ("alarms", {"at_most": "never"}, f'at_most: {GRAMMAR} "never"'),
        ("alarms", {"at_most": 2}, "at_most: expected text in quotes, got 2; put it in quotes"),
        (
            "alarms",
            {"at_most": "0 false per year"},
            (
                "at_most: expected more than 0, and at most 1 false per hour,"
                ' got "0 false per year"; "off" raises no alarms'
            ),
        ),
        (
            "alarms",
            {"at_most": "25 false per day"},
            'at_most: expected more than 0, and at most 1 false per hour, got "25 false per day"',
        ),
        (
            "alarms",
            {"settle": "3 weeks"},
            (
                "settle: expected a time such as 90s, 5m, 3h or 2d, got '3 weeks';"
                " units are y, d, h, m, s, ms"
            ),
        ),
        ("alarms", {"settle": "0d"}, 'settle: expected a time above 0, got "0d"'),
        ("alarms", {"period_s": 0}, "period_s: expected a time in seconds, above 0, got 0"),
        (
            "learn",
            {"max_withheld": 24},
            (
                'max_withheld: expected a time in quotes, such as "12h" or "3d", got 24;'
                " put it in quotes"
            ),
        ),
        ("learn", {"max_withheld": "0s"}, 'max_withheld: expected a time above 0, got "0s"'),
        (
            "learn",
            {"when": ""},
            "when: expected a condition in quotes, such as 'rpm > 50', got \"\"",
        ),
        ("learn", {"when": " "}, 'when: expected a condition such as "rpm > 50", got none'),
        (
            "learn",
            {"when": "rpms > 50"},
            'when: expected a channel\'s name, got "rpms"; did you mean "rpm"?',
        ),
        (
            "learn",
            {"when": "speed > 50"},
            'when: expected a channel\'s name, got "speed"; channels are rpm, motor temp',
        ),
        (
            "learn",
            {"when": "rpm > fast"},
            'when: expected a number after rpm >, got "fast"',
        ),
    ],
)
def test_a_mistake_is_one_line(section, settings, message):
    """Where it stands, what was expected, what came, what to do."""
    assert f"{section}.{message}" == refused(**{section: settings})


def test_of_many_channels_the_first_are_listed():
    """A line is a line."""
    schema = {"channels": [f"s{i:02}" for i in range(99)]}
    line = refused(schema=schema, learn={"when": "speed > 5"})

    assert line.endswith("; channels are s00, s01, s02, s03, s04, s05, s06, s07, s08, s09, ...")


# -- before it runs ------------------------------------------------------------------------


ROWS = np.array([[60.0, 20.0], [60.0, 20.0], [40.0, 20.0], [60.0, 20.0], [np.nan, 20.0]])


def test_a_trial_says_how_many_rows_count():
    """Only they are learnt; the first row has no past, and a gap is not in any state."""
    lines = trial_lines(client(learn={"when": "rpm>50"}), Listened(ROWS, {}, 1.0))

    assert "[learn] when = rpm > 50: true in 2 of 4 vectors" in lines
    assert any(line.startswith("learnt: 2 vectors of 4 dimensions") for line in lines)
    assert "learning takes at most 0.096 MB: exact covariance" in lines


def test_a_trial_says_more_than_a_hundred_megabytes_in_digits():
    """Of ten thousand channels, not as 1.7e+02 MB."""
    summary = LearntSummary(rank=500)
    schema = Schema.anonymous(10_000)
    most = SAPCA(500, memory=summary.memory_bytes, schema=schema).most_bytes
    line = _memory_line(summary, schema)

    assert most > 100_000_000
    assert line.startswith(f"learning takes at most {round(most / 1e6)} MB: ")


def test_a_trial_without_a_row_that_counts_says_so():
    """A machine that stands still, or a condition that nothing fulfills."""
    lines = trial_lines(client(learn={"when": "rpm > 5000"}), Listened(ROWS, {}, 1.0))

    expected = "[learn] when = rpm > 5000: true in 0 of 4 vectors; nothing is learnt or scored"
    assert expected in lines


def test_a_trial_without_a_condition_does_not_speak_of_one():
    """All rows count."""
    lines = trial_lines(client(), Listened(ROWS, {}, 1.0))

    assert not [line for line in lines if "[learn]" in line]
    assert any(line.startswith("learnt: 4 vectors") for line in lines)
