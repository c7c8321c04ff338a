"""An aggregator's configuration: roots and others, ways in and up, and mistakes in one line."""

from __future__ import annotations

import dataclasses
import tomllib
from pathlib import Path

import msgspec
import numpy as np
import pytest

from submerge import UsageError
from submerge.protocol.settings import AggregatorSettings
from submerge_aggregator import config
from submerge_aggregator.config import (
    AggregatorConfig,
    ParentConfig,
    StatusConfig,
    load,
)
from submerge_aggregator.downlink.config import GrpcListen, ListenConfig, MqttListen
from submerge_client.config.client_config import ClientConfig
from submerge_client.config.sample import sample
from submerge_client.config.tomlfile import decoded
from support.samples import settings_of, spoken_of, variants

SAMPLE, CLIENT_SAMPLE = sample(AggregatorConfig), sample(ClientConfig)

ROOT = """
node = "root"
store = "root.db"
[listen.grpc]
insecure = true
"""
SCHEMA = 'channels = ["a", "b", "c", "d"]\nlags = 2'
PUMPS = f"[groups.pumps.schema]\n{SCHEMA}\n"
PARENT = """
[parent]
name = "top"
url = "mqtts://broker"
"""


@pytest.fixture
def read(tmp_path, monkeypatch):
    """Load a text, in the folder of its file: messages then name it as `aggregator.toml`."""
    monkeypatch.chdir(tmp_path)

    def read(text: str, **environ: str) -> AggregatorConfig:
        Path("aggregator.toml").write_text(text, encoding="utf-8")
        return load("aggregator.toml", environ)

    return read


@pytest.fixture
def refused(read):
    """Load what must be refused, and return the one line with the reason."""

    def refused(text: str, **environ: str) -> str:
        with pytest.raises(UsageError) as error:
            read(text, **environ)
        return str(error.value)

    return refused


# What a configuration comes to


def test_a_root_has_no_parent_and_says_the_schema(read) -> None:
    """Its plan for a group has schema, ranks, and whether scaling is learnt."""
    root = read(ROOT + PUMPS + 'scaling = "fleet"\n[groups.pumps.summary]\nrank = 3')
    plan = root.plans["pumps"]

    assert AggregatorSettings("root", None) == root.settings
    assert ("a", "b", "c", "d", "a-1", "b-1", "c-1", "d-1") == plan.schema.names
    assert plan.learns_scaling
    assert "own" == plan.schema.center
    assert (3, 5) == (plan.summaries.rule.start, plan.summaries.oversample)


def test_below_a_root_the_schema_comes_down(read) -> None:
    """It may be left out there; the parent's name decides whose child it is."""
    site = read(ROOT + PARENT + "[groups.pumps]\n[timing]\nreport_every_s = 60")

    assert AggregatorSettings("root", "top", report_every_s=60.0) == site.settings
    assert site.plans["pumps"].schema is None
    assert not site.plans["pumps"].learns_scaling


def test_several_groups_are_served_each_by_its_own_plan(read) -> None:
    """A section of each kind for every group."""
    plans = read(ROOT + PUMPS + '[groups."press.2".schema]\nchannels = ["x"]\nlags = 9').plans

    assert {"pumps": 8, "press.2": 9} == {name: plan.schema.dim for name, plan in plans.items()}


def test_a_group_has_bounds_unless_it_says_no(read) -> None:
    """And trusts the nodes that it names; a pattern that fits no name is refused."""
    plain, chosen = (
        read(ROOT + PUMPS + more).plans["pumps"]
        for more in ("", '[groups.pumps]\nbounds = "off"\ntrusted = ["pump-7", "line-*"]\n')
    )
    rule = plain.influence_rule(60.0)

    assert plain.bounds
    assert rule is not None
    assert (80.0 <= rule.first_rows, 60.0, ()) == (True, rule.known_s, rule.trusted)
    assert ("pump-7", "line-*") == chosen.trusted
    assert chosen.influence_rule(60.0) is None
    with pytest.raises(UsageError, match=r"groups\.pumps\.trusted"):
        read(ROOT + PUMPS + '[groups.pumps]\ntrusted = ["a b"]\n')


def test_a_group_is_robust_where_it_says_so(read) -> None:
    """And nowhere else: what is asked for there is another model."""
    plain, robust = read(ROOT + PUMPS), read(ROOT + PUMPS + "[groups.pumps]\nrobust = true\n")

    assert not plain.plans["pumps"].robust
    assert robust.plans["pumps"].robust


def test_what_is_left_out_is_as_the_node_has_it() -> None:
    """Names and defaults are the node's own."""
    known = {field.name: field.default for field in dataclasses.fields(AggregatorSettings)}
    timing = msgspec.structs.asdict(config.AggregatorTiming())
    timing |= msgspec.structs.asdict(config.AdvancedConfig())
    del timing["burst"]

    assert timing == {name: known[name] for name in timing}


def test_a_parent_is_an_uplink_with_a_name(read) -> None:
    """All settings of an uplink hold."""
    parent = read(ROOT + PARENT + 'columns = "i8"\n' + PUMPS).parent

    assert ParentConfig(name="top", url="mqtts://broker", columns="i8") == parent
    assert ("broker", 8883, True, 122880) == (parent.host, parent.port, parent.tls, parent.limit)


@pytest.mark.parametrize(
    ("address", "expected"),
    [
        ("10.0.0.1:8470", ("10.0.0.1", 8470)),
        ("[::]:0", ("::", 0)),
        ("localhost:65535", ("localhost", 65535)),
    ],
)
def test_an_address_is_a_host_and_a_port(address, expected) -> None:
    """Port 0 is any that is free."""
    assert expected == GrpcListen(address=address, insecure=True).endpoint
    assert expected == StatusConfig(address=address).endpoint


def test_status_can_be_switched_off() -> None:
    """With an empty address nothing listens."""
    assert StatusConfig(address="").endpoint is None
    assert ("127.0.0.1", 8471) == StatusConfig().endpoint


# Mistakes


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(
            ROOT + "[groups.pumps]",
            "groups.pumps.schema: expected one from the root, got nothing; add it, or name a"
            " [parent] that it comes from",
            id="a root without schema",
        ),
        pytest.param(
            ROOT + "[groups]",
            "groups: expected at least one, [groups.NAME], got none",
            id="no groups",
        ),
        pytest.param(
            ROOT,
            "groups: expected a table, got nothing; add [groups]",
            id="no section of groups",
        ),
        pytest.param(
            ROOT + '[groups."a b".schema]\nchannels = ["a"]',
            'groups."a b": expected a name in quotes, 1 to 64 of A-Z a-z 0-9 . _ -, got "a b"',
            id="a group that has no name",
        ),
        pytest.param(
            ROOT + PUMPS + "[groups.pumps.summary]\nrank = 9",
            "groups.pumps.summary.rank: expected fewer than dim = channels x lags = 4 x 2 = 8,"
            " got 9; lower it, or leave it out",
            id="rank over dim",
        ),
        pytest.param(
            ROOT + PUMPS + "[groups.pumps.sumary]\nrank = 2",
            "groups.pumps.sumary: expected a setting of [groups.pumps], got"
            ' "sumary"; did you mean "summary"?',
            id="misspelt",
        ),
        pytest.param(
            ROOT + PUMPS + "rank = 3",
            'groups.pumps.schema.rank: expected a setting of [groups.pumps.schema], got "rank";'
            " it belongs in [groups.NAME.summary]",
            id="another section's",
        ),
        pytest.param(
            ROOT.replace("[listen.grpc]\ninsecure = true", "[listen]") + PUMPS,
            "listen: expected [listen.grpc], [listen.mqtt] or both, got neither; add one:"
            " children have to reach it",
            id="nobody reaches it",
        ),
        pytest.param(
            ROOT.replace("insecure = true", "") + PUMPS,
            "listen.grpc.cert: expected a certificate and its key, or a kit, got nothing; name a"
            " kit, or say insecure = true if the network is trusted",
            id="insecure, and not said",
        ),
        pytest.param(
            ROOT + PUMPS + "[operators]",
            "operators.cert: expected a certificate and its key, or a kit, got nothing; name a"
            " kit: operators send tokens, which others must not read",
            id="operators without a certificate",
        ),
        pytest.param(
            ROOT + PUMPS + "[operators]\ninsecure = true",
            "operators.insecure: expected false where other machines can connect: they would read"
            ' tokens, got true; delete it, or use address = "127.0.0.1:8472"',
            id="operators in the open",
        ),
        pytest.param(
            ROOT + PUMPS + '[operators]\ninsecure = true\naddress = "127.0.0.1:8471"',
            "operators.address: expected another port than that of status.address, got"
            ' "127.0.0.1:8471"; take port 8472, or move status.address',
            id="operators at the status address",
        ),
        pytest.param(
            ROOT + PUMPS + '[operators]\nca = "ca.pem"',
            'operators.ca: expected none without cert and key: there is no TLS, got "ca.pem"; leave'
            " it out, or name both",
            id="operators' authority without a certificate",
        ),
        pytest.param(
            ROOT + 'ca = "ca.pem"\n' + PUMPS,
            'listen.grpc.ca: expected none without cert and key: there is no TLS, got "ca.pem";'
            " leave it out, or name both",
            id="certificates for nothing",
        ),
        pytest.param(
            ROOT + 'cert = "c"\nkey = "k"\n' + PUMPS,
            "listen.grpc.insecure: expected false with a certificate, got true; leave it out:"
            " certificates are checked all the same",
            id="insecure for nothing",
        ),
        pytest.param(
            ROOT + 'cert = "c"\n' + PUMPS,
            "listen.grpc.key: expected the file that belongs to cert, got nothing",
            id="half a pair",
        ),
        pytest.param(
            ROOT + '[listen.mqtt]\nurl = "mqtt://broker"\n' + PUMPS,
            'listen.mqtt.url: expected a url with TLS, mqtts://, got "mqtt://broker"; say'
            " insecure = true if the network is trusted, or use mqtts:// and a kit, or ca, cert"
            " and key",
            id="a broker without TLS",
        ),
        pytest.param(
            ROOT + '[listen.mqtt]\nurl = "grpcs://parent"\n' + PUMPS,
            (
                "listen.mqtt.url: expected mqtt://host:port or mqtts://host:port"
                ' or ws://host:port/path or wss://host:port/path, got "grpcs://parent"'
            ),
            id="no broker",
        ),
        pytest.param(
            ROOT + PARENT.replace("top", "root") + PUMPS,
            'parent.name: expected another node, got "root"',
            id="its own parent",
        ),
        pytest.param(
            ROOT + '[parent]\nurl = "mqtts://broker"\n' + PUMPS,
            "parent.name: expected a name in quotes, 1 to 64 of A-Z a-z 0-9 . _ -, and no word of"
            " MQTT topics, as `score` is, got nothing; add name = ...",
            id="a parent without a name",
        ),
        pytest.param(
            ROOT + PUMPS + '[status]\naddress = "8471"',
            'status.address: expected host:port, as in 0.0.0.0:8470 or [::]:8470, got "8471"',
            id="no address",
        ),
        pytest.param(
            ROOT + PUMPS + "[advanced]\nscaling_rows = 0",
            "advanced.scaling_rows: expected a whole number of at least 1, got 0",
            id="no readings",
        ),
        pytest.param(
            ROOT + PUMPS + "[timing]\nmin_rows = 5",
            'timing.min_rows: expected a setting of [timing], got "min_rows"; known here:'
            " report_every_s, model_every_s",
            id="a client's setting",
        ),
    ],
)
def test_a_mistake_is_one_line_that_says_where_and_what_to_do(refused, text, expected) -> None:
    """File, key as TOML writes it, what was expected, what came, what to do."""
    assert f"aggregator.toml: {expected}" == refused(text)


@pytest.mark.parametrize(
    "address", ["", "host", ":80", "h:1:2", "h:-1", "h:65536", "u@h:1", "h:1/x"]
)
def test_what_is_no_address_is_refused(address) -> None:
    """A server needs a host and a port, and nothing else."""
    with pytest.raises(UsageError, match="expected host:port"):
        GrpcListen(address=address, insecure=True)


LARGE = f"""
[groups.pumps.schema]
channels = [{", ".join(f'"channel {i}"' for i in range(100))}]
lags = 20
[groups.pumps.summary]
rank = 8
"""
LENGTHY = f"""
[groups.pumps.schema]
channels = [{", ".join(f'"channel {i} {"x" * 500}"' for i in range(200))}]
[groups.pumps.summary]
rank = 8
"""
MQTT = '[listen.mqtt]\nurl = "mqtts://broker"\n'


def test_a_report_that_does_not_fit_upward_is_refused_with_the_numbers(refused) -> None:
    """As at a client, and with what only an aggregator has; k is the group's."""
    size = 4 * 2000 * 13 + 16 * 2000 + 8 * 13 + 43_582

    line = refused(ROOT + PARENT + "max_message_bytes = 120000" + LARGE)

    assert (
        f"aggregator.toml: parent.max_message_bytes: expected room for {size} bytes: dim 2000"
        " (channels x lags), k 13 (rank + oversample), 4 dim k + 16 dim + 8 k + 43582, got a limit"
        " of 120000 bytes; lower schema.lags, summary.rank or summary.oversample of group pumps,"
        " or raise it as far as the parent does"
    ) == line


def test_a_model_that_does_not_fit_downward_is_refused(read, refused) -> None:
    """It carries its schema's text, which a report does not."""
    read(ROOT + LENGTHY)  # 4 MiB over gRPC
    read(ROOT + PARENT + LENGTHY)  # the report alone goes by MQTT

    line = refused(ROOT + MQTT + LENGTHY)

    assert line.startswith("aggregator.toml: listen.mqtt.max_message_bytes: expected room for ")
    assert "got a limit of 122880 bytes; lower schema.lags" in line
    assert line.endswith("of group pumps, or raise it as far as broker and children do")


def test_how_large_a_message_may_be_is_for_each_way_down_to_say(read, refused) -> None:
    """Both limits can be raised and lowered; what must pass is known at the start."""
    most = "max_message_bytes = 300_000\n"
    made = read(ROOT + most + MQTT + most + LARGE)

    assert (300_000, 300_000) == tuple(
        way.max_message_bytes for way in (made.listen.grpc, made.listen.mqtt)
    )
    assert refused(ROOT + "max_message_bytes = 100_000\n" + LARGE).startswith(
        "aggregator.toml: listen.grpc.max_message_bytes: expected room for "
    )


def test_a_model_carries_what_the_fleet_settles(read, refused) -> None:
    """Scaling is numbers for each channel: a text that fits without them may not with them."""
    channels = ", ".join(f'"channel {i}"' for i in range(1400))
    text = ROOT + MQTT + f"[groups.pumps.schema]\nchannels = [{channels}]\n"
    few = "[groups.pumps.summary]\nrank = 1\noversample = 1\n"

    read(text + few)
    line = refused(text + 'scaling = "fleet"\n' + few)

    assert line.startswith("aggregator.toml: listen.mqtt.max_message_bytes: expected room for ")


LANDMARKS = """
[groups.pumps.schema]
channels = ["a", "b"]
lags = 27
[groups.pumps.schema.features]
map = "nystrom"
landmarks = "none.npy"
"""


def test_a_join_that_does_not_fit_upward_is_refused_with_the_numbers(read, refused) -> None:
    """It carries the schema's text, in which landmarks are many bytes, and no report has."""
    reported = ROOT + PARENT.replace("mqtts://broker", "grpcs://top")
    size = read(reported + LANDMARKS).groups["pumps"].schema.text_bytes

    line = refused(ROOT + PARENT + LANDMARKS)

    assert (
        f"aggregator.toml: parent.max_message_bytes: expected room for {size + 2560} bytes: to"
        f" join, a schema of {size}, and 2560, got a limit of 122880 bytes; lower"
        " schema.features.features or schema.lags of group pumps, or raise it as far as the"
        " parent does"
    ) == line


def test_a_root_says_where_its_landmarks_are_named(read) -> None:
    """The whole way to the setting, though the file is read late."""
    np.save("none.npy", np.eye(53))
    made = read(ROOT + LANDMARKS)

    expected = r"^groups\.pumps\.schema\.features\.landmarks: expected 54 columns in none\.npy"
    with pytest.raises(UsageError, match=expected):
        _ = made.plans


# The environment


def test_a_group_is_found_whatever_its_case(read) -> None:
    """A variable has capitals only, and neither dots nor hyphens."""
    text = ROOT + f'[groups."Pumps-n.1".schema]\n{SCHEMA}'

    read_rank = read(text, SUBMERGE__GROUPS__PUMPS_N_1__SUMMARY__RANK="2")

    assert 2 == read_rank.groups["Pumps-n.1"].summary.rank


def test_a_section_can_come_from_the_environment_alone(read, refused) -> None:
    """What is missing in it then is looked for in the file's own words."""
    url = {"SUBMERGE__LISTEN__MQTT__URL": "mqtts://broker"}
    fleet = {"SUBMERGE__LISTEN__MQTT__FLEET": "north"}

    assert (
        MqttListen(url="mqtts://broker", fleet="north")
        == read(ROOT + PUMPS, **url, **fleet).listen.mqtt
    )
    assert (
        "SUBMERGE__LISTEN__MQTT__FLEET: listen.mqtt.url: expected text in quotes, got nothing;"
        " add url = ..."
    ) == refused(ROOT + PUMPS, **fleet)


def test_a_variable_that_is_wrong_is_named(refused) -> None:
    """Not the file: that is not where to look."""
    assert (
        'SUBMERGE__STATUS__ADRESS: expected a setting of [status], got "adress"; did you mean'
        ' "address"?'
    ) == refused(ROOT + PUMPS, SUBMERGE__STATUS__ADRESS="x")


# Files


def test_a_file_that_is_not_there_says_how_to_get_one(tmp_path) -> None:
    """`init` writes one."""
    with pytest.raises(UsageError, match=r"submerge aggregator init > aggregator\.toml"):
        load(tmp_path / "aggregator.toml", {})


# The sample


def test_the_sample_loads_as_it_stands(read) -> None:
    """As a root."""
    assert read(SAMPLE).parent is None


def test_what_the_sample_leaves_to_be_taken_in_can_be() -> None:
    """Paragraph by paragraph."""
    assert 9 <= len([decoded(table, AggregatorConfig) for table in variants(SAMPLE)])


def test_the_sample_speaks_of_every_setting_and_of_no_other() -> None:
    """It is where people look for them."""
    said = {setting for table in variants(SAMPLE) for setting in spoken_of(table)}

    assert set(settings_of(AggregatorConfig)) == said


def test_timing_in_the_sample_is_what_holds_without_it() -> None:
    """A commented line shows the default."""
    tables = [table for table in variants(SAMPLE) if table["timing"]]

    assert [config.AggregatorTiming()] == [
        decoded(table, AggregatorConfig).timing for table in tables
    ]


def test_the_pace_and_limits_in_the_sample_are_what_holds_without_them() -> None:
    """A commented line shows the default."""
    tables = [table["listen"] for table in variants(SAMPLE)]
    paces = [
        ListenConfig(grpc=GrpcListen(insecure=True), most_per_s=table["most_per_s"])
        for table in tables
        if "most_per_s" in table
    ]
    said = {
        (way, listen[way]["max_message_bytes"])
        for listen in tables
        for way in ("grpc", "mqtt")
        if "max_message_bytes" in listen.get(way, {})
    }

    assert [ListenConfig(grpc=GrpcListen(insecure=True))] == paces
    assert {("grpc", 4194304), ("mqtt", 122880)} == said


def test_both_samples_are_one_fleet() -> None:
    """The client's parent, address, group, ranks and schema are this root's."""
    client = decoded(tomllib.loads(CLIENT_SAMPLE), ClientConfig)
    root = decoded(tomllib.loads(SAMPLE), AggregatorConfig)

    assert client.parent == root.node
    assert (client.uplink.host, client.uplink.port) == root.listen.grpc.endpoint
    assert client.built_schema == root.plans[client.group].schema
    assert client.schema.scaling == root.groups[client.group].schema.scaling
    assert client.summary.shared == root.groups[client.group].summary


@pytest.mark.parametrize("word", ["score", "Alarm", "model", "HELLO"])
def test_a_word_of_topics_names_no_node_and_no_parent(refused, word) -> None:
    """Below such a name there would be more than its own topics, at any broker of the fleet."""
    expected = "expected a name in quotes, 1 to 64 of A-Z a-z 0-9 . _ -, and no word of MQTT topics"
    for setting, variable in (("node", "NODE"), ("parent.name", "PARENT__NAME")):
        line = refused(ROOT + PARENT + PUMPS, **{f"SUBMERGE__{variable}": word})

        assert expected in line
        assert setting in line or f"SUBMERGE__{variable}" in line
        assert f'got "{word}"' in line
