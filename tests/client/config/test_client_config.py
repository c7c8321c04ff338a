"""A client's configuration: the file, the environment, and the error lines for mistakes."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import tomllib
from contextlib import suppress
from pathlib import Path

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import SAPCA, Channel, Scaling, Subspace, UsageError
from submerge.protocol.messages import Counts, Incarnation, Report, ScoreSketches, Stamp
from submerge.protocol.score_trail import LAST_MINUTE, MINUTES, ScoreTrail
from submerge.protocol.settings import ClientSettings
from submerge.stats.quantile_sketch import QuantileSketch, packed
from submerge_client.config import client_config as config
from submerge_client.config.client_config import ClientConfig, load
from submerge_client.config.links import RetryConfig, UplinkConfig
from submerge_client.config.sample import sample
from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.config.sections import Section
from submerge_client.config.sensors import (
    FileSensor,
    HostSensor,
    InfluxSensor,
    MqttSensor,
    NdjsonSensor,
)
from submerge_client.config.sizes import MAXIMA, SCORES, SKETCHES, TRAIL, size_of_report
from submerge_client.config.tomlfile import decoded
from submerge_proto.wire import alarms, codec, scores
from support.alarm_statuses import most_peaks, most_vigil
from support.samples import settings_of, spoken_of, variants

SAMPLE = sample(ClientConfig)

RANKS = 'expected a whole number of at least 1, "auto", "sapca" or "energy"'

TOP = """
node = "pump-1"
group = "pumps"
parent = "root"
state = "pump-1.state"
"""
SECTIONS = {
    "uplink": 'url = "grpc://parent"\ninsecure = true',
    "schema": 'channels = ["a", "b", "c", "d"]\nlags = 2',
    "sensor": 'kind = "ndjson"',
}


def toml(top: str = TOP, **sections: str) -> str:
    """A whole file, with some sections replaced or added."""
    return top + "".join(f"[{name}]\n{text}\n" for name, text in {**SECTIONS, **sections}.items())


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "client.toml"


@pytest.fixture
def read(path, monkeypatch):
    """Load a text, in the folder of its file: messages then name it as `client.toml`."""
    monkeypatch.chdir(path.parent)

    def read(text: str, **environ: str) -> ClientConfig:
        path.write_text(text, encoding="utf-8")
        return load(path.name, environ)

    return read


def test_files_may_stand_beside_the_configuration(path, monkeypatch) -> None:
    """One in the working directory comes first; what the program writes itself stays there."""
    text = 'url = "mqtts://b"\nusername = "u"\npassword_file = "secret"'
    path.write_text(toml(uplink=text))
    for name in ("secret", "pump-1.state"):
        (path.parent / name).touch()
    elsewhere = path.parent / "elsewhere"
    elsewhere.mkdir()
    monkeypatch.chdir(elsewhere)

    def read() -> ClientConfig:
        return load("../client.toml", {})

    assert (Path("../secret"), Path("pump-1.state")) == (read().uplink.password_file, read().state)
    (elsewhere / "secret").touch()
    assert Path("secret") == read().uplink.password_file


def test_a_path_that_cannot_be_looked_at_is_no_crash(read) -> None:
    text = f'url = "mqtts://b"\nca = "{"x" * 300}"'
    assert 300 == len(str(read(toml(uplink=text)).uplink.ca))


@pytest.fixture
def refused(read):
    """Load what must be refused, and return the one line that says why."""

    def refused(text: str, **environ: str) -> str:
        with pytest.raises(UsageError) as error:
            read(text, **environ)
        line = str(error.value)
        assert line == " ".join(line.split())
        return line

    return refused


def uplink(**settings) -> UplinkConfig:
    return decoded(settings, UplinkConfig)


def schema(**settings) -> SchemaConfig:
    return decoded(settings, SchemaConfig)


# What a configuration comes to


def test_a_file_says_how_the_node_behaves(read) -> None:
    """Settings go through to the node; what is left out is as the node has it."""
    settings = read(toml(timing="report_every_s = 60\n[advanced]\ncap_s = 2")).settings

    assert (
        ClientSettings(
            *("pump-1", "pumps", "root"),
            report_every_s=60.0,
            cap_s=2.0,
            fills_gaps=True,
            lags=2,
            together=8,
        )
        == settings
    )


def test_what_is_left_out_is_as_the_node_has_it() -> None:
    """Names and defaults are the node's own; `gather_s` is the agent's."""
    known = {field.name: field.default for field in dataclasses.fields(ClientSettings)}
    timing = msgspec.structs.asdict(config.ClientTiming())
    timing |= msgspec.structs.asdict(RetryConfig())
    del timing["gather_s"]

    assert timing == {name: known[name] for name in timing}


def test_eight_rows_are_learnt_together(read) -> None:
    """Unless the file says otherwise; the setting before it is still used."""
    assert 8 == read(toml()).settings.together
    assert 3 == read(toml(privacy="rows = 3")).settings.together
    assert 7 == read(toml(timing="min_rows = 7")).settings.min_rows


def test_gaps_are_filled_unless_they_are_withheld(read) -> None:
    """`gaps` is the node's `fills_gaps`."""
    assert read(toml()).settings.fills_gaps
    assert not read(toml(TOP + 'gaps = "withhold"\n')).settings.fills_gaps


@pytest.mark.parametrize(
    ("silence", "sensor", "watch"),
    [
        (600.0, 'kind = "ndjson"', ""),
        (600.0, 'kind = "host"\nperiod_s = 10', ""),
        (36000.0, 'kind = "host"\nperiod_s = 3600', ""),
        (7200.0, 'kind = "host"\nperiod_s = 3600', "silence_s = 7200"),
        (600.0, 'kind = "mqtt"\nurl = "mqtts://b"\ntopic = "{channel}"', ""),
        (7200.0, 'kind = "mqtt"\nurl = "mqtts://b"\ntopics = ["zigbee2mqtt/+"]', ""),
    ],
)
def test_a_slow_sensor_may_be_silent_for_longer(silence, sensor, watch, read) -> None:
    """Ten of its periods, unless the file says otherwise."""
    assert silence == read(toml(sensor=sensor, watch=watch)).silence_s


def test_a_sensor_that_could_not_but_be_silent_is_refused(refused) -> None:
    """It would be started again before its first row, for ever."""
    line = refused(toml(sensor='kind = "host"\nperiod_s = 60', watch="silence_s = 60"))

    assert (
        "client.toml: watch.silence_s: expected more than the sensor's period of 60 s, got 60;"
        " raise it, or leave it out" == line
    )


def test_rows_may_not_wait_until_the_sensor_counts_as_silent(refused) -> None:
    """The program would be started again while rows wait."""
    line = refused(toml(timing="gather_s = 600"))

    assert (
        "client.toml: timing.gather_s: expected less than the 600 s after which the sensor is"
        " silent, got 600" == line
    )


def test_ranks_reach_the_summaries(read) -> None:
    """What is shown, and what is kept beside it."""
    summaries = read(toml(summary="rank = 3\noversample = 2")).summaries

    assert (3, 3, 2) == (summaries.rule.start, summaries.rank_max, summaries.oversample)


def test_directions_are_kept_for_the_highest_rank_that_may_be_chosen(read) -> None:
    """Before the root has chosen, 8 are shown, and never more than may be chosen."""
    auto, low = read(toml()), read(toml(summary="rank_max = 4"))

    assert (8, 16, 21) == (auto.summaries.rule.start, auto.summaries.rank_max, auto.summary.kept)
    assert (4, 4, 9) == (low.summaries.rule.start, low.summaries.rank_max, low.summary.kept)
    assert auto.summary.shared.summaries.rank_max == 16


@pytest.mark.parametrize("channels", [1, 2, 3])
def test_few_channels_need_no_setting(read, channels) -> None:
    """The rank is below the dimension without a line in the file."""
    names = ", ".join(f'"c{i}"' for i in range(channels))
    assert read(toml(schema=f"channels = [{names}]")).summary.rank == "auto"


def test_units_say_scales() -> None:
    """Or names do, of channels without a unit; what neither says is measured."""
    channels = ("hall/temperature", "p [hPa]", "flow [l/min]", "heat/power [kWh]", "y")
    own = ChannelConfig(name="x", offset=1.0, scale=2.0)
    schema = SchemaConfig(channels=(*channels, own), scaling="units")

    assert {"hall/temperature": (0.0, 0.5), "p": (0.0, 1.0), "x": (1.0, 2.0)} == schema.given
    np.testing.assert_array_equal((0.0, 0.0, np.nan, np.nan, np.nan, 1.0), schema.offsets)
    assert schema.learns_scaling
    assert {"x": (1.0, 2.0)} == msgspec.structs.replace(schema, scaling="fleet").given


@pytest.mark.parametrize(
    ("text", "expected"),
    [("1MB", 10**6), ("500kB", 500_000), ("4MiB", 4 << 20), (" 1.5 MB", 1_500_000), ("0B", 0)],
)
def test_the_memory_of_learning_is_a_size(read, text, expected) -> None:
    """It reaches the engine as bytes; by default it has three megabytes."""
    assert expected == read(toml(summary=f'memory = "{text}"')).summaries.memory
    assert SAPCA().memory == read(toml()).summaries.memory == 4_200_000


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('kind = "ndjson"', NdjsonSensor()),
        ('kind = "host"\nperiod_s = 5', HostSensor(period_s=5.0)),
        (
            'kind = "influx"\nmode = "output"\nname = "{name}/{field}"',
            InfluxSensor(mode="output", name="{name}/{field}", states={"true": 1.0, "false": 0.0}),
        ),
        (
            'kind = "file"\npaths = ["a.csv", "b.csv"]\nspeed = 2',
            FileSensor(paths=(Path("a.csv"), Path("b.csv")), speed=2.0),
        ),
        (
            'kind = "mqtt"\nurl = "mqtts://broker"\ntopic = "{channel}/x"',
            MqttSensor(url="mqtts://broker", topic="{channel}/x"),
        ),
        (
            'kind = "mqtt"\nurl = "mqtts://b"\ntopics = ["a/+"]\nstates = { ON = 1 }',
            MqttSensor(
                url="mqtts://b",
                topics=("a/+",),
                states={"ON": 1.0},
            ),
        ),
    ],
)
def test_the_kind_of_sensor_says_which_settings_there_are(read, text, expected) -> None:
    """One section, a kind for each source."""
    assert expected == read(toml(sensor=text)).sensor


@pytest.mark.parametrize("mode", ["processor", "output"])
@pytest.mark.parametrize(
    ("more", "place"),
    [({"scores": 'to = "stdout"'}, "scores.to"), ({"alarms": 'ndjson = "-"'}, "alarms.ndjson")],
)
def test_metrics_share_standard_output_with_no_json(read, mode, more, place) -> None:
    """Telegraf reads it: lines of JSON there are refused, with what to say instead."""
    text = toml(sensor=f'kind = "influx"\nmode = "{mode}"', **more)
    with pytest.raises(UsageError, match=rf"{place}: expected another place: .*; say "):
        read(text)


# Schemas


def test_a_channel_is_a_name_or_a_name_with_a_unit() -> None:
    """As text, or as a table; brackets that touch the name belong to it."""
    channels = ["flow", "heat [°C]", "a[0]", "x []", {"name": "hum [%]", "unit": "%"}]

    assert (
        Channel("flow"),
        Channel("heat", "°C"),
        Channel("a[0]"),
        Channel("x"),
        Channel("hum [%]", "%"),
    ) == schema(channels=channels).sensed


def test_lags_put_older_rows_behind_newer_ones() -> None:
    """All channels at lag 0, then all at lag 1; units and scaling are repeated."""
    channels = [
        {"name": "a", "unit": "V", "offset": 1, "scale": 2},
        {"name": "b", "offset": 3, "scale": 4},
    ]
    built = schema(channels=channels, lags=3, scaling="fixed").built

    assert ("a", "b", "a-1", "b-1", "a-2", "b-2") == built.names
    assert Channel("a-2", "V") == built.channels[4]
    assert Scaling((1.0, 3.0) * 3, (2.0, 4.0) * 3) == built.scaling


def test_the_fleets_scaling_is_learnt(read) -> None:
    """With "fleet" the schema has none yet, and the node gathers moments first."""
    learns = read(toml(schema=SECTIONS["schema"] + '\nscaling = "fleet"'))

    assert learns.settings.learns_scaling
    assert learns.built_schema.scaling is None
    assert not read(toml()).settings.learns_scaling


def test_center_and_half_life_are_part_of_the_schema() -> None:
    """Nodes that differ in them do not share a model."""
    built = schema(channels=["a"], center="none", half_life_s=3600).built

    assert ("none", 3600.0) == (built.center, built.half_life)


def test_left_out_each_node_keeps_its_own_mean() -> None:
    """What is usual may differ from device to device; a library's schema says it itself."""
    assert "own" == schema(channels=["a"]).built.center


# Links


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("grpc://parent", ("grpc", "parent", 8470, False)),
        ("grpcs://parent:443", ("grpcs", "parent", 443, True)),
        ("mqtt://10.0.0.1", ("mqtt", "10.0.0.1", 1883, False)),
        ("MQTTS://[::1]/", ("mqtts", "::1", 8883, True)),
        ("memory://Room-1", ("memory", "Room-1", 0, False)),
    ],
)
def test_a_url_has_scheme_host_port_and_perhaps_tls(url, expected) -> None:
    """Ports left out are the scheme's own."""
    link = UplinkConfig(url=url, insecure=expected[0] in ("grpc", "mqtt"))

    assert expected == (link.scheme, link.host, link.port, link.tls)


@given(text=st.text(), scheme=st.sampled_from(["", "grpcs://", "mqtts://h", "memory://"]))
def test_any_text_is_a_url_or_a_usage_error(text, scheme) -> None:
    """Nothing else comes of it."""
    try:
        link = UplinkConfig(url=scheme + text)
    except UsageError:
        return
    assert link.host
    assert 0 <= link.port < 65536


def test_the_limit_is_the_transports_own() -> None:
    """120 KiB on MQTT, 4 MiB elsewhere, or what the file says."""
    assert 122880 == uplink(url="mqtts://broker").limit
    assert 4194304 == uplink(url="grpcs://parent").limit
    assert 5000 == uplink(url="grpcs://parent", max_message_bytes=5000).limit


def test_scores_go_by_the_uplinks_broker_or_by_their_own(read) -> None:
    """With a url of their own nothing else is taken from the uplink, but for the fleet."""
    broker = 'url = "mqtts://broker"\nusername = "p"\nfleet = "north"'

    shared = read(toml(uplink=broker, scores='to = "mqtt"')).scores_link
    own = read(
        toml(scores='to = "mqtt"\n[scores.broker]\nurl = "mqtt://x"\ninsecure = true')
    ).scores_link

    assert ("broker", "p", "north") == (shared.host, shared.username, shared.fleet)
    assert ("x", None, "default") == (own.host, own.username, own.fleet)


# The size of a report


def biggest(dim: int, k: int, *, count: int) -> Report:
    """A report with the longest names, and scores in the most and widest buckets."""
    name, current = "n" * 64, Incarnation(2**50, 2**63 - 1)
    sketch = QuantileSketch(0, tuple((-7200 + 900 * i, count) for i in range(16)))
    return Report(
        Stamp(name, name, current, 2**40),
        final=True,
        pinned=current,
        fence=b"",
        fingerprint="ab" * 32,
        summary=Subspace(
            "ab" * 32,
            np.eye(dim, k, dtype=np.float32),
            np.ones(k),
            np.zeros(dim),
            weight=1.0,
            energy=1e9,
            spectral_bound=1.0,
        ),
        moments=None,
        counts=Counts(2**50, 2**50, 2**50),
        as_of=1e9,
        synced=True,
        version=2**62,
        lifetime=2**50,
        scores=ScoreSketches(sketch, sketch, None, most_peaks(count, linear=False, above=False)),
        alarm_status=most_vigil("n" * 64, above=False),
        trail=ScoreTrail(LAST_MINUTE, bytes(MINUTES)),
    )


@pytest.mark.parametrize(("dim", "k"), [(1, 1), (4, 2), (100, 13), (3000, 40)])
def test_no_report_is_larger_than_its_size_was_reckoned(dim, k) -> None:
    """Names of 64 letters and buckets of 2^28 scores included."""
    assert len(codec.encode(biggest(dim, k, count=2**28 - 1))) <= size_of_report(dim, k)


def test_scores_stay_within_their_allowance() -> None:
    """Sketches with as many scores in each bucket as one may have, and nine alarms."""
    sketch = QuantileSketch(0, tuple((-7200 + 900 * i, 2**59 - 1) for i in range(16)))
    maxima = scores.MAXIMA.made(most_peaks(2**53, linear=False, above=False))
    alarm_status = alarms.ALARM_STATUS.made(most_vigil("n" * 64, above=False))

    assert 2 * len(packed(sketch)) <= SKETCHES
    assert maxima.ByteSize() <= MAXIMA
    assert alarm_status.ByteSize() <= SCORES - SKETCHES - MAXIMA - TRAIL


def test_a_report_over_the_limit_is_refused_with_the_numbers(refused) -> None:
    """dim, k, bytes and limit; and what to lower."""
    channels = ", ".join(f'"c{i}"' for i in range(100))

    line = refused(
        toml(
            uplink='url = "mqtts://broker"',
            schema=f"channels = [{channels}]\nlags = 30",
            summary="rank = 10",
        )
    )

    size = 4 * 3000 * 15 + 16 * 3000 + 8 * 15 + 15_122
    assert (
        f"client.toml: uplink.max_message_bytes: expected room for {size} bytes: dim 3000"
        " (channels x lags), k 15 (rank + oversample), 4 dim k + 16 dim + 8 k + 15122, got a limit"
        " of 122880 bytes; lower schema.lags, summary.rank or summary.oversample, or raise it as"
        " far as the other end does"
    ) == line


def test_spares_beyond_the_dimension_weigh_nothing(read) -> None:
    """There are never more columns than dimensions."""
    few = read(toml(summary="rank = 7\noversample = 1000", uplink=SECTIONS["uplink"]))

    assert size_of_report(8, 8) == few.largest_report


# Mistakes


@pytest.mark.parametrize(
    ("sections", "expected"),
    [
        pytest.param(
            {"uplink": SECTIONS["uplink"] + '\nuserneim = "x"'},
            'uplink.userneim: expected a setting of [uplink], got "userneim";'
            ' did you mean "username"?',
            id="misspelt",
        ),
        pytest.param(
            {"schema": SECTIONS["schema"] + "\nrank = 3"},
            'schema.rank: expected a setting of [schema], got "rank"; it belongs in [summary]',
            id="another section's",
        ),
        pytest.param(
            {"scores": 'log = "debug"'},
            'scores.log: expected a setting of [scores], got "log";'
            " it belongs at the top of the file, above the first [section]",
            id="below the sections",
        ),
        pytest.param(
            {"sensor": 'kind = "file"\npaths = ["x"]\nlateness_s = 1'},
            'sensor.lateness_s: expected a setting of [sensor], got "lateness_s";'
            ' it belongs in [sensor] with kind = "mqtt"',
            id="another kind's",
        ),
        pytest.param(
            {"timming": "min_rows = 3"},
            'timming: expected a setting or a [section], got "timming"; did you mean "timing"?',
            id="section misspelt",
        ),
        pytest.param(
            {"uplink": SECTIONS["uplink"] + "\n[uplink.timing]\nmin_rows = 3"},
            'uplink.timing: expected a setting of [uplink], got "timing"; it belongs as [timing]',
            id="section within another",
        ),
        pytest.param(
            {"summary": "reports_every_s = 3"},
            'summary.reports_every_s: expected a setting of [summary], got "reports_every_s";'
            ' did you mean "report_every_s" in [timing]?',
            id="misspelt and elsewhere",
        ),
        pytest.param(
            {"summary": "zzz = 3"},
            'summary.zzz: expected a setting of [summary], got "zzz"; known here: rank, rank_max,'
            " oversample, rank_min, alpha, beta, hold_off, exact, memory",
            id="like nothing",
        ),
        pytest.param(
            {"summary": 'rank = "sapca"\nalpha = 0.2'},
            "summary.alpha: alpha must be at least 0 and below beta, got alpha 0.2 and beta 0.1",
            id="bounds of a rank crossed",
        ),
        pytest.param(
            {"summary": 'rank = "sapca"\nrank_min = 4\nbeta = 0.3'},
            "summary.beta: the rank can never grow: beta 0.3 is not below 1/4, the largest share"
            " that the last direction can have",
            id="a rank that cannot move",
        ),
        pytest.param(
            {"summary": 'rank = "energy"\nrank_min = 20'},
            "summary.rank_min: expected at most rank_max = 16, got 20",
            id="lowest rank above the highest",
        ),
        pytest.param(
            {"summary": "alpha = 0.05"},
            'summary.alpha: expected nothing without rank = "sapca" or "energy", got 0.05',
            id="bounds without a rule",
        ),
        pytest.param(
            {"uplink": "url = 5"},
            "uplink.url: expected text in quotes, got 5; put it in quotes",
            id="number for text",
        ),
        pytest.param(
            {"summary": 'rank = "3"'},
            f'summary.rank: {RANKS}, got "3"; leave the quotes out',
            id="text for number",
        ),
        pytest.param(
            {"summary": "rank = 3.0"},
            f"summary.rank: {RANKS}, got 3.0",
            id="not whole",
        ),
        pytest.param(
            {"summary": "rank = true"},
            f"summary.rank: {RANKS}, got true",
            id="truth for number",
        ),
        pytest.param(
            {"uplink": 'url = "grpc://x"\ninsecure = "true"'},
            'uplink.insecure: expected true or false, got "true"; leave the quotes out',
            id="text for truth",
        ),
        pytest.param(
            {"timing": "report_every_s = 0"},
            "timing.report_every_s: expected a time in seconds, above 0, got 0",
            id="no time",
        ),
        pytest.param(
            {"timing": "report_every_s = inf"},
            "timing.report_every_s: expected a time in seconds, above 0, got inf",
            id="for ever",
        ),
        pytest.param(
            {"timing": "report_every_s = nan"},
            "timing.report_every_s: expected a time in seconds, above 0, got nan",
            id="nan",
        ),
        pytest.param(
            {"schema": 'channels = "a"'},
            'schema.channels: expected a list of text in quotes or a table, got "a"; put it in [ ]',
            id="no list",
        ),
        pytest.param(
            {"schema": 'channels = ["a", 5]'},
            "schema.channels[1]: expected text in quotes or a table, got 5; put it in quotes",
            id="inside a list",
        ),
        pytest.param(
            {"schema": 'channels = ["a", {name = "b", units = "V"}]'},
            "schema.channels[1].units: expected a setting of [schema.channels[1]],"
            ' got "units"; did you mean "unit"?',
            id="misspelt inside a list",
        ),
        pytest.param(
            {"schema": SECTIONS["schema"] + '\ncenter = "fleat"'},
            'schema.center: expected "fleet", "own" or "none", got "fleat"; did you mean "fleet"?',
            id="no such choice",
        ),
        pytest.param(
            {"sensor": 'kind = "mqqt"'},
            'sensor.kind: expected "ndjson", "influx", "file", "mqtt", "host" or "program",'
            ' got "mqqt"; did you mean "mqtt"?',
            id="no such kind",
        ),
        pytest.param(
            {"sensor": "period_s = 3"},
            'sensor.kind: expected "ndjson", "influx", "file", "mqtt", "host" or "program",'
            " got nothing; add kind = ...",
            id="no kind",
        ),
        pytest.param(
            {"sensor": 'kind = "file"'},
            "sensor.paths: expected a list of a path in quotes, got nothing; add paths = ...",
            id="missing",
        ),
        pytest.param(
            {"sensor": 'kind = "file"\npaths = []'},
            "sensor.paths: expected at least one path, got an empty list",
            id="no paths",
        ),
        pytest.param(
            {"sensor": 'kind = "mqtt"\nurl = "mqtts://b"\ntopic = "plant/+/value"'},
            "sensor.topic: expected a topic with {channel} in it once, and without + and #,"
            ' got "plant/+/value"; as in "plant/{channel}/value"',
            id="wildcard",
        ),
        pytest.param(
            {"sensor": 'kind = "mqtt"\nurl = "mqtts://b"\ntopics = ["a/+", "b/#/c"]'},
            'sensor.topics[1]: expected # as the last level alone, got "b/#/c"',
            id="no filter",
        ),
        pytest.param(
            {"sensor": 'kind = "mqtt"\nurl = "mqtts://b"\ntopics = "a/+"'},
            'sensor.topics: expected a list of text in quotes, got "a/+"; put it in [ ]',
            id="one topic without a list",
        ),
        pytest.param(
            {"sensor": 'kind = "mqtt"\nurl = "mqtts://b"\ntopics = ["a/{channel}"]'},
            "sensor.topics[0]: expected no other places than {device} and {field},"
            ' got "a/{channel}"',
            id="another place",
        ),
        pytest.param(
            {"sensor": 'kind = "mqtt"\nurl = "mqtts://b"'},
            "sensor.topics: expected topics of devices, or topic with {channel} in it, got neither;"
            ' add topics = ["zigbee2mqtt/+"], say',
            id="no topics",
        ),
        pytest.param(
            {"sensor": 'kind = "mqtt"\nurl = "mqtts://b"\ntopics = ["a/+"]\nvalue = "v"'},
            'sensor.value: expected it without topics, got "v"; leave one of them out',
            id="value with topics",
        ),
        pytest.param(
            {"sensor": 'kind = "mqtt"\nurl = "mqtts://b"\ntopic = "{channel}"\nrebirth = true'},
            "sensor.rebirth: expected topics beside it, got topic; write topics = [...],"
            " or leave it out",
            id="rebirth without topics",
        ),
        pytest.param(
            {
                "schema": 'channels = ["a", "b#"]\nlags = 4',
                "sensor": 'kind = "mqtt"\nurl = "mqtts://b"\ntopic = "{channel}"',
            },
            "schema.channels[1]: expected a name without / + and #, as it stands in a topic,"
            ' got "b#"',
            id="channel that is no topic",
        ),
        pytest.param(
            {"schema": 'channels = ["a", "a"]\nlags = 4'},
            'schema.channels: expected names that differ, also from "a-1" for "a" a row ago,'
            ' got "a" twice; rename one',
            id="a name twice",
        ),
        pytest.param(
            {"schema": 'channels = ["a", "a-1"]\nlags = 4'},
            'schema.channels: expected names that differ, also from "a-1" for "a" a row ago,'
            ' got "a-1" twice; rename one',
            id="a name that lags make",
        ),
        pytest.param(
            {"schema": "channels = []"},
            "schema.channels: expected at least one, got an empty list",
            id="no channels",
        ),
        pytest.param(
            {"schema": 'channels = ["a"]\nlags = 100000000000'},
            "schema.lags: expected channels x lags to be at most 65536, got 1 x 100000000000;"
            " lower it",
            id="too many lags",
        ),
        pytest.param(
            {"schema": 'channels = ["a", " "]\nlags = 4'},
            'schema.channels[1]: expected a name, got " "',
            id="blank name",
        ),
        pytest.param(
            {"schema": 'channels = ["a"]\nscaling = "fixed"'},
            'schema.channels[0]: expected offset and scale, since scaling = "fixed", got "a";'
            ' write { name = "a", offset = 0.0, scale = 1.0 } with its own numbers',
            id="fixed without numbers",
        ),
        pytest.param(
            {"schema": 'channels = [{ name = "a", scale = 2 }]'},
            'schema.scaling: expected "fixed", "fleet" or "units", since "a" has numbers for it,'
            ' got "none";'
            " or leave offset and scale out",
            id="numbers without scaling",
        ),
        pytest.param(
            {"schema": 'channels = [{ name = "a", scale = 2 }]\nscaling = "fleet"'},
            'schema.channels[0]: expected both offset and scale, or neither, got "a";'
            " write the other one, too",
            id="half a scaling",
        ),
        pytest.param(
            {"schema": 'channels = ["a", "b"]\nlags = 2', "summary": "rank = 4"},
            "summary.rank: expected fewer than dim = channels x lags = 2 x 2 = 4, got 4;"
            " lower it, or leave it out",
            id="rank of all dimensions",
        ),
        pytest.param(
            {"summary": 'memory = "3 apples"'},
            "summary.memory: expected a size such as 500kB or 3MB, got '3 apples';"
            " units are B, kB, KiB, MB, MiB, GB",
            id="no size",
        ),
        pytest.param(
            {"summary": "memory = 3000000"},
            'summary.memory: expected a size in quotes, such as "1MB", got 3000000;'
            " put it in quotes",
            id="size without quotes",
        ),
    ],
)
def test_a_mistake_is_one_line_that_says_where_and_what_to_do(refused, sections, expected) -> None:
    """File, key as TOML writes it, what was expected, what came, what to do."""
    assert f"client.toml: {expected}" == refused(toml(**sections))


@pytest.mark.parametrize(
    ("top", "expected"),
    [
        (TOP.replace("node", "nod"), 'nod: expected a setting or a [section], got "nod"'),
        (TOP.replace('node = "pump-1"', ""), "node: expected a name in quotes, 1 to 64 of"),
        (
            TOP.replace("pump-1", "pump 1"),
            "node: expected a name in quotes, 1 to 64 of A-Z a-z 0-9",
        ),
        (TOP.replace("root", "pump-1"), 'parent: expected another node, got "pump-1"'),
        (TOP.replace('"pump-1.state"', '""'), 'state: expected a path in quotes, got ""'),
    ],
)
def test_the_top_of_the_file_is_judged_like_a_section(refused, top, expected) -> None:
    """Names, paths and a parent of its own."""
    assert refused(toml(top)).startswith(f"client.toml: {expected}")


def test_a_section_that_is_needed_is_asked_for(refused) -> None:
    """It is said as TOML writes it."""
    text = TOP + "".join(f"[{name}]\n{SECTIONS[name]}\n" for name in ("uplink", "schema"))

    assert "client.toml: sensor: expected a table, got nothing; add [sensor]" == refused(text)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"url": "parent:8470"}, "url: expected grpc://host:port or grpcs://host:port or mqtt://"),
        ({"url": "http://parent"}, 'wss://host:port/path, got "http://parent"'),
        ({"url": "grpcs://"}, 'got "grpcs://"'),
        ({"url": "grpcs://h:70000"}, 'got "grpcs://h:70000" (Port out of range 0-65535)'),
        ({"url": "grpcs://h:0"}, "(there is no port 0)"),
        ({"url": "grpcs://h/path"}, 'got "grpcs://h/path"'),
        ({"url": "grpcs://[::1"}, "(Invalid IPv6 URL)"),
        (
            {"url": "mqtt://h"},
            'got "mqtt://h"; say insecure = true if the network is trusted, or use mqtts://',
        ),
        ({"url": "grpcs://h", "insecure": True}, "insecure: expected false with a url with TLS"),
        (
            {"url": "grpc://h", "insecure": True, "ca": "ca.pem"},
            'ca: expected none with grpc://, which has no TLS, got "ca.pem"; leave it out',
        ),
        ({"url": "grpcs://h", "cert": "c"}, "key: expected the file that belongs to cert"),
        ({"url": "grpcs://h", "key": "c"}, "cert: expected the file that belongs to key"),
        ({"url": "grpcs://h", "username": "u"}, "username: expected none with grpcs://"),
        ({"url": "mqtts://h", "password_file": "u"}, "username: expected one beside password_file"),
        ({"url": "mqtts://h", "fleet": "a/b"}, "fleet: expected a name"),
        ({"url": "mqtts://h/mqtt"}, 'got "mqtts://h/mqtt"'),
        ({"url": "wss://h/mqtt?token=x"}, "wss://host:port/path, got"),
        ({"url": "ws://h"}, "say insecure = true if the network is trusted, or use wss://"),
        ({"url": "mqtt://h", "insecure": True, "alpn": "mqtt"}, "alpn: expected none with mqtt://"),
        ({"url": "grpcs://h", "alpn": "mqtt"}, "alpn: expected none with grpcs://"),
        (
            {"url": "wss://h", "password_command": ("p",)},
            "username: expected one beside password_command",
        ),
        (
            {
                "url": "wss://h",
                "username": "u",
                "password_file": "f",
                "password_command": ("p",),
            },
            "password_command: expected none beside password_file",
        ),
    ],
)
def test_a_link_that_is_wrong_or_unsafe_is_refused(settings, expected) -> None:
    """Insecure has to be said, and certificates need something to certify."""
    with pytest.raises(UsageError) as error:
        uplink(**settings)

    assert expected in str(error.value)


@pytest.mark.parametrize(
    ("url", "port", "path"),
    [
        ("wss://h", 443, "/mqtt"),
        ("wss://h/", 443, "/mqtt"),
        ("wss://h:8884/a/b/", 8884, "/a/b"),
        ("mqtts://h/", 8883, ""),
        ("mqtts://h:443", 443, ""),
    ],
)
def test_a_websocket_has_a_path(url, port, path) -> None:
    """Most brokers are at /mqtt."""
    link = uplink(url=url)

    assert (port, path, True) == (link.port, link.path, link.is_broker)


@pytest.mark.parametrize("url", ["mqtts://me:secret@h", "mqtts://me:secret@h:99999", "x:secret@h"])
def test_a_password_in_a_url_is_refused_and_not_repeated(url) -> None:
    """An error ends up in a log."""
    with pytest.raises(UsageError) as error:
        UplinkConfig(url=url)

    assert "secret" not in str(error.value)


@pytest.mark.parametrize(
    ("scores", "expected"),
    [
        (
            'to = "mqtt"',
            "to: expected [scores.broker] with the url of a broker, got nothing, and grpc:// in ",
        ),
        (
            'to = "mqtt"\n[scores.broker]\nurl = "grpcs://x"',
            "broker.url: expected mqtt://host:port",
        ),
        (
            'to = "mqtt"\n[scores.broker]\nurl = "mqtt://x"',
            "broker.url: expected a url with TLS",
        ),
        ('[scores.broker]\nusername = "x"', "broker.url: expected text in quotes, got nothing"),
    ],
)
def test_scores_need_a_broker(refused, scores, expected) -> None:
    """Its mistakes are reported as those of [scores]."""
    line = refused(toml(scores=scores))

    assert line.startswith(f"client.toml: scores.{expected}")


def test_what_the_core_refuses_gets_its_place_too() -> None:
    """Its words are kept; where they belong is put in front."""

    class Inner(Section, frozen=True):
        def __post_init__(self) -> None:
            raise UsageError("no good")

    outer = msgspec.defstruct("Outer", [("inner", Inner)], bases=(Section,), frozen=True)
    with pytest.raises(UsageError, match=r"^inner: no good$"):
        decoded({"inner": {}}, outer)


names = st.sampled_from(
    sorted({name for way in settings_of(ClientConfig) for name in way.split(".")})
)
values = st.recursive(
    st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.datetimes()
    | st.sampled_from(["mqtt", "file", "mqtts://h", "fixed", "{channel}"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=8,
)


@given(changes=st.dictionaries(names, values, max_size=3), section=names)
def test_any_table_is_a_configuration_or_a_usage_error(changes, section) -> None:
    """Whatever stands where, no other error comes of it."""
    table = tomllib.loads(toml())
    inner = table.get(section)
    (inner if isinstance(inner, dict) else table).update(changes)
    with suppress(UsageError):
        decoded(table, ClientConfig)


# Files


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("node = pump-1\n", 'client.toml: line 1: expected TOML, got "node = pump-1": Invalid'),
        ('\nnode = "a"\nnode = "b"\n', 'line 3: expected TOML, got "node = \\"b\\"": Cannot overw'),
        ('node = "a', 'line 1: expected TOML, got "node = \\"a": '),
        ("[uplink\n", 'line 1: expected TOML, got "[uplink": '),
        ("", "client.toml: node: expected a name"),
    ],
)
def test_what_is_not_toml_is_shown_with_its_line(refused, text, expected) -> None:
    """The parser's reason, the line itself, and what it most often means."""
    assert expected in refused(text)


def test_a_file_that_is_not_there_says_how_to_get_one(tmp_path) -> None:
    """`init` writes one."""
    with pytest.raises(UsageError, match=r"write one: submerge client init > client\.toml"):
        load(tmp_path / "client.toml", {})


def test_a_folder_is_no_file(tmp_path) -> None:
    """What the system says is passed on."""
    with pytest.raises(UsageError, match="expected a file to read, got: Is a directory"):
        load(tmp_path, {})


def test_other_encodings_are_refused_and_a_mark_is_not(path) -> None:
    """Notepad's byte order mark does no harm; Latin-1 is reported with its line."""
    path.write_text(toml(), encoding="utf-8-sig")
    assert "pump-1" == load(path, {}).node

    path.write_bytes(toml().encode() + "# °".encode("latin-1"))
    with pytest.raises(UsageError, match="line 14: expected UTF-8"):
        load(path, {})


# The environment


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("UPLINK__URL", "grpcs://other", ("uplink", "url", "grpcs://other")),
        ("UPLINK__URL", '"grpcs://other"', ("uplink", "url", "grpcs://other")),
        ("SUMMARY__RANK", "3", ("summary", "rank", 3)),
        ("SCHEMA__CHANNELS", '["x", "y", "z", "w"]', ("schema", "channels", ("x", "y", "z", "w"))),
        ("SUMMARY", "{rank = 2}", ("summary", "rank", 2)),
        ("UPLINK__FLEET", "12", ("uplink", "fleet", "12")),
        ("UPLINK__FLEET", "2024-01-01", ("uplink", "fleet", "2024-01-01")),
    ],
)
def test_a_variable_takes_the_place_of_a_setting(read, variable, value, expected) -> None:
    """Its value is TOML, or text: also a name that looks like a number."""
    *keys, wanted = expected
    environ = {f"SUBMERGE__{variable}": value, "SUBMERGE__UPLINK__INSECURE": "false"}
    safe = {"uplink": 'url = "grpcs://parent"'}

    got = read(toml(**safe), **environ)
    for key in keys:
        got = getattr(got, key)

    assert wanted == got


def test_other_variables_do_not_matter(read) -> None:
    """One underscore belongs to other programs."""
    assert "pump-1" == read(toml(), SUBMERGE_NODE="x", submerge__node="y", NODE="z").node


@pytest.mark.parametrize(
    ("variable", "value", "expected"),
    [
        ("UPLINK__URLL", "x", 'expected a setting of [uplink], got "urll"; did you mean "url"?'),
        ("NOD", "x", 'expected a setting or a [section], got "nod"; did you mean "node"?'),
        ("TIMMING__MIN_ROWS", "3", 'expected a setting or a [section], got "timming"; did you'),
        (
            "SUMMARY__RANK",
            "many",
            'expected a whole number of at least 1, "auto", "sapca" or "energy", got "many"',
        ),
        ("SUMMARY__RANK", "80", "expected fewer than dim = channels x lags = 4 x 2 = 8, got 80"),
        ("SUMMARY", "{rang = 2}", "summary.rang: expected a setting of [summary]"),
        ("NODE__X", "3", 'expected node to be a section, got "pump-1"; take the variable away'),
        ("SENSOR__TOPIC", "x", 'it belongs in [sensor] with kind = "mqtt"'),
        ("SENSOR__KIND", "mqqt", 'did you mean "mqtt"?'),
        ("NODE", "a b", "expected a name in quotes"),
        ("NODE", "1\nx = 2", "expected a name in quotes"),
        ("", "x", 'expected a setting or a [section], got ""'),
    ],
)
def test_a_variable_that_is_wrong_is_named(refused, variable, value, expected) -> None:
    """Not the file: that is not where to look."""
    line = refused(toml(), **{f"SUBMERGE__{variable}": value})

    assert line.startswith(f"SUBMERGE__{variable}: ")
    assert expected in line


@pytest.fixture(scope="module")
def written(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("any") / "client.toml"
    path.write_text(toml())
    return path


@given(keys=st.lists(names | st.text(max_size=3), max_size=4), value=st.text() | names)
def test_any_variable_is_a_setting_or_a_usage_error(written, keys, value) -> None:
    """Whatever its name and value."""
    with suppress(UsageError):
        load(written, {"SUBMERGE__" + "__".join(keys).upper(): value})


# The sample


def test_the_sample_loads_as_it_stands(read) -> None:
    """A fleet of one machine: it reports to the aggregator of the other sample."""
    assert "grpc://127.0.0.1:8470" == read(SAMPLE).uplink.url


def test_what_the_sample_leaves_to_be_taken_in_can_be() -> None:
    """Paragraph by paragraph."""
    assert 11 <= len([decoded(table, ClientConfig) for table in variants(SAMPLE)])


def test_the_sample_speaks_of_every_setting_and_of_no_other() -> None:
    """It is where people look for them."""
    said = {setting for table in variants(SAMPLE) for setting in spoken_of(table)}

    # `[uplink]` says what these are for.
    elsewhere = {f"sensor.mqtt.{name}" for name in ("ca", "cert", "key")}
    assert set(settings_of(ClientConfig)) == said | elsewhere


def test_timing_in_the_sample_is_what_holds_without_it() -> None:
    """A commented line shows the default."""
    tables = [table for table in variants(SAMPLE) if "gather_s" in table.get("timing", ())]

    assert [decoded(table, ClientConfig).settings for table in tables] == [
        decoded(next(variants(SAMPLE)), ClientConfig).settings
    ]


def sections() -> list[type[Section]]:
    """Every section that there is."""
    found = [Section]
    for section in found:
        found += section.__subclasses__()
    return found[1:]


@pytest.mark.parametrize("section", sections(), ids=lambda section: section.__name__)
def test_every_setting_is_told_where_it_is_declared(section) -> None:
    """Its section's docstring names it, or the one that it has it from."""
    reported = " ".join(base.__doc__ or "" for base in section.__mro__ if base is not object)

    for field in msgspec.structs.fields(section):
        assert field.name in reported


def test_a_configuration_costs_little_to_load() -> None:
    """msgspec and tomllib beside what the core has: an edge device holds them for ever."""
    code = (
        "import submerge_client.config.client_config, sys; "
        "print(*{n.split('.')[0] for n in sys.modules})"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    heavy = {
        "scipy",
        "click",
        "rich",
        "humanize",
        "grpc",
        "paho",
        "google",
        "asyncio",
        "socket",
        "http",
    }
    assert not heavy & set(done.stdout.split())
