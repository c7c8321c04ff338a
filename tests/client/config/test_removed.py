"""Settings of earlier versions: each is a line in the log, and none stops a start."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from submerge.protocol.settings import AggregatorSettings, AlarmSettings
from submerge_aggregator import config as aggregator_config
from submerge_client.config import client_config
from submerge_client.config.removed import AGGREGATOR, CLIENT, MOVED, REFUSED_FROM

IGNORED, USED = "removed setting ignored", "removed setting still used"

CLIENT_FILE = """
node = "pump-1"
group = "pumps"
parent = "root"
state = "pump-1.state"
[uplink]
url = "mqtts://broker"
fleet = "north"
[schema]
channels = ["a", "b", "c", "d"]
[schema.features]
features = 16
map = "countsketch"
[sensor]
kind = "ndjson"
[summary]
rank = 2
[timing]
min_rows = 20
[alarms]
settle = "1d"
[scores]
to = "mqtt"
"""

AGGREGATOR_FILE = """
node = "root"
store = "root.db"
[listen]
most_per_s = 20.0
[listen.grpc]
insecure = true
[timing]
model_every_s = 60
[groups.pumps.summary]
rank = 2
[groups.pumps.schema]
channels = ["a", "b", "c", "d"]
[groups.pumps.schema.features]
features = 16
map = "countsketch"
"""

VALUES: dict[str, Any] = {
    "url": "mqtts://other",
    "insecure": False,
    **dict.fromkeys(("ca", "cert", "key", "username", "password_file", "fleet"), "x"),
}
"""Of a key that takes more than a small number."""


@pytest.fixture
def load(tmp_path, monkeypatch):
    """Load a program's file with some keys set, in the file or by variables."""
    monkeypatch.chdir(tmp_path)

    def load(program: str, keys: dict[str, Any], *, by: str = "file"):
        text = CLIENT_FILE if program == "client" else AGGREGATOR_FILE
        environ = {}
        for at, value in keys.items():
            section, _, key = at.rpartition(".")
            if by == "file":
                said = f'"{value}"' if isinstance(value, str) else str(value).lower()
                text = text.replace(f"[{section}]\n", f"[{section}]\n{key} = {said}\n")
            else:
                environ[f"SUBMERGE__{at.upper().replace('.', '__')}"] = str(value)
        Path(f"{program}.toml").write_text(text)
        module = client_config if program == "client" else aggregator_config
        return module.load(f"{program}.toml", environ)

    return load


CASES = [
    (program, at.replace("*", "pumps"), removal)
    for program, removed in (("client", CLIENT), ("aggregator", AGGREGATOR))
    for at, removal in removed.items()
    if removal is not MOVED
]


def ids(value: object) -> str | None:
    """Programs and keys are ids of their own."""
    return None if isinstance(value, str) else ""


@pytest.mark.parametrize("by", ["file", "environment"])
@pytest.mark.parametrize(("program", "at", "removal"), CASES, ids=ids)
def test_a_removed_key_is_one_line_and_no_error(program, at, removal, by, load, caplog) -> None:
    """It says which key, where it stands, what becomes of it, and what to do."""
    plain = load(program, {})
    made = load(program, {at: 3}, by=by)

    (record,) = caplog.records
    variable = f"SUBMERGE__{at.upper().replace('.', '__')}"
    assert (USED if removal.used else IGNORED, "WARNING") == (record.getMessage(), record.levelname)
    assert record.facts == {
        "at": f"{program}.toml: {at}" if by == "file" else variable,
        "hint": removal.hint,
        "refused_from": REFUSED_FROM,
    }
    assert removal.used == (made != plain)


@pytest.mark.parametrize(("program", "at"), [case[:2] for case in CASES if not case[2].used])
def test_a_value_that_is_ignored_may_be_anything(program, at, load) -> None:
    """Nothing looks at it."""
    assert load(program, {}) == load(program, {at: "soon"})


def test_a_variable_that_is_a_whole_section_is_looked_into(load, caplog) -> None:
    """The line names the variable, and the key inside of it."""
    made = load("client", {"timing": "{finals = 3, min_rows = 20}"}, by="environment")

    assert load("client", {}) == made
    (record,) = caplog.records
    assert "SUBMERGE__TIMING: timing.finals" == record.facts["at"]


def test_what_is_ignored_is_a_constant(load) -> None:
    """Whatever a file says."""
    client = load("client", {"timing.cap_s": 7, "alarms.after": 2, "alarms.of": 3})
    root = load("aggregator", {"timing.scaling_rows": 7, "timing.seal_after_s": 1})
    alarms = AlarmSettings(settle_s=86400.0)

    assert (300.0, alarms) == (client.settings.cap_s, client.settings.alarms)
    assert AggregatorSettings("root", None) == root.settings


def test_what_says_what_a_vector_means_is_still_used(load) -> None:
    """Ignoring it would begin another schema, and leave out what was learnt."""
    keys = {"schema.features.seed": 3, "schema.features.buckets": 64}
    client = load("client", keys)
    root = load("aggregator", {f"groups.pumps.{at}": value for at, value in keys.items()})

    features = client.built_schema.features
    assert (3, 64) == (features.seed, features.buckets)
    assert client.built_schema.fingerprint == root.plans["pumps"].schema.fingerprint


# -- the broker for scores, which has moved ----------------------------------------------------


@pytest.mark.parametrize("by", ["file", "environment"])
def test_a_broker_in_scores_is_understood(load, caplog, by) -> None:
    """All that [scores] said of it is what [scores.broker] says."""
    said = {name: VALUES[name] for name in ("url", "ca", "cert", "key", "username", "fleet")}
    link = load("client", {f"scores.{name}": value for name, value in said.items()}, by=by)

    shown = {name: str(getattr(link.scores_link, name)) for name in said}
    assert said == shown
    assert {USED} == set(caplog.messages)
    assert len(said) == len(caplog.messages)


@pytest.mark.parametrize("by", ["file", "environment"])
def test_a_fleet_of_scores_is_still_on_the_uplinks_broker(load, by) -> None:
    """Without a url it was the uplink's broker, under another topic."""
    link = load("client", {"scores.fleet": "south"}, by=by).scores_link

    assert ("broker", "south") == (link.host, link.fleet)


@pytest.mark.parametrize("name", VALUES)
def test_a_broker_that_was_not_asked_keeps_nothing_from_starting(load, name, caplog) -> None:
    """Where scores go elsewhere it had no effect."""
    plain = load("client", {"scores.to": "none"}, by="environment")
    keys = {"scores.to": "none", f"scores.{name}": VALUES[name]}

    assert plain == load("client", keys, by="environment")
    assert [USED] == caplog.messages


def test_a_mistake_in_a_moved_setting_names_where_it_was_said(load) -> None:
    """The variable, for that is where to look."""
    with pytest.raises(ValueError, match=r"^SUBMERGE__SCORES__URL: expected mqtt://host:port"):
        load("client", {"scores.url": "http://x"}, by="environment")
