"""Settings that leave: each is used, and a line in the log."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from submerge import UsageError
from submerge_aggregator import config as aggregator_config
from submerge_client.config import client_config
from submerge_client.config.removed import AGGREGATOR, CLIENT, HINT, REFUSED_FROM

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
report_every_s = 300
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
                text = text.replace(f"[{section}]\n", f"[{section}]\n{key} = {value}\n")
            else:
                environ[f"SUBMERGE__{at.upper().replace('.', '__')}"] = str(value)
        Path(f"{program}.toml").write_text(text)
        module = client_config if program == "client" else aggregator_config
        return module.load(f"{program}.toml", environ)

    return load


CASES = [
    (program, at.replace("*", "pumps"))
    for program, removed in (("client", CLIENT), ("aggregator", AGGREGATOR))
    for at in removed
]


@pytest.mark.parametrize("by", ["file", "environment"])
@pytest.mark.parametrize(("program", "at"), CASES)
def test_a_key_that_leaves_is_one_line_and_no_error(program, at, by, load, caplog) -> None:
    """It says which key, where it stands, and what to do."""
    plain = load(program, {})
    made = load(program, {at: 3}, by=by)

    (record,) = caplog.records
    variable = f"SUBMERGE__{at.upper().replace('.', '__')}"
    assert ("removed setting still used", "WARNING") == (record.getMessage(), record.levelname)
    assert record.facts == {
        "at": f"{program}.toml: {at}" if by == "file" else variable,
        "hint": HINT,
        "refused_from": REFUSED_FROM,
    }
    assert made != plain


def test_a_variable_that_is_a_whole_section_is_looked_into(load, caplog) -> None:
    """The line names the variable, and the key inside of it."""
    made = load("client", {"summary": "{linear_rank = 3, rank = 2}"}, by="environment")

    assert load("client", {"summary.linear_rank": 3}) == made
    record, _ = caplog.records
    assert "SUBMERGE__SUMMARY: summary.linear_rank" == record.facts["at"]


def test_what_says_what_a_vector_means_is_still_used(load) -> None:
    """Ignoring it would begin another schema, and leave out what was learnt."""
    keys = {"schema.features.seed": 3, "schema.features.buckets": 64}
    client = load("client", keys)
    root = load("aggregator", {f"groups.pumps.{at}": value for at, value in keys.items()})

    features = client.built_schema.features
    assert (3, 64) == (features.seed, features.buckets)
    assert client.built_schema.fingerprint == root.plans["pumps"].schema.fingerprint


@pytest.mark.parametrize(
    ("program", "at"),
    [
        ("client", "timing.cap_s"),
        ("client", "alarms.after"),
        ("client", "scores.fleet"),
        ("aggregator", "timing.scaling_rows"),
        ("aggregator", "listen.burst"),
    ],
)
def test_what_commit_f0bc8489_did_not_know_is_refused(program, at, load) -> None:
    """As any unknown setting is, with the place where it stands."""
    with pytest.raises(UsageError, match=rf"^{program}\.toml: {at}: expected a setting of "):
        load(program, {at: 3})
