"""`submerge aggregator audit`: entries of the files beside a store, for people and programs."""

from __future__ import annotations

import json
import time

import pytest

from submerge_aggregator.audit import line_of
from support.commands import shell

CONFIG = """
node = "root"
store = "{store}"
[listen.grpc]
insecure = true
[groups.room]
summary.rank = 1
[groups.room.schema]
channels = ["a", "b"]
[audit]
path = "{audit}"
"""


@pytest.fixture
def submerge(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


@pytest.fixture
def store(tmp_path):
    """A store's path, with an audit log of two files beside it."""
    now = time.time()
    old = [line_of("start", now - 7200, {"version": "1"}), b"{torn\n"]
    new = [
        line_of("join", now - 3600, {"node": "pump-1", "group": "pumps", "address": "a b"}),
        line_of("refused", now - 60, {"node": "pump-\x1b[31m2", "reason": "spoofed", "count": 3}),
    ]
    (tmp_path / "root.db.audit.jsonl.1").write_bytes(b"".join(old))
    (tmp_path / "root.db.audit.jsonl").write_bytes(b"".join(new))
    return tmp_path / "root.db"


def test_entries_are_lines_for_people(submerge, store):
    """The oldest first; what is no entry is left out, and a terminal is not controlled."""
    ran = submerge("aggregator", "audit", "--store", store)
    lines = ran.out.splitlines()
    assert (0, "") == (ran.status, ran.err)
    assert ["start", "join", "refused"] == [line.split()[1] for line in lines]
    assert lines[1].endswith('node=pump-1 group=pumps address="a b"')
    assert "\x1b" not in ran.out


@pytest.mark.parametrize(
    ("options", "found"),
    [
        (["--since", "90m"], ["join", "refused"]),
        (["--event", "join"], ["join"]),
        (["--node", "pump-1"], ["join"]),
        (["--group", "pumps"], ["join"]),
        (["--since", "1s"], []),
    ],
)
def test_entries_are_chosen(submerge, store, options, found):
    """By time, kind, node and group; as they stand in the file."""
    ran = submerge("aggregator", "audit", "--store", store, "--json", *options)
    assert found == [json.loads(line)["event"] for line in ran.out.splitlines()]


def test_the_configuration_names_the_file(submerge, tmp_path, store):
    """Or says that there is none."""
    config = tmp_path / "root.toml"
    config.write_text(CONFIG.format(store=tmp_path / "x.db", audit=f"{store}.audit.jsonl"))
    assert 3 == len(submerge("aggregator", "audit", "--config", config).out.splitlines())
    config.write_text(CONFIG.format(store=store, audit=""))
    ran = submerge("aggregator", "audit", "--config", config)
    assert (2, "submerge: this aggregator has no audit log: [audit] path is empty\n") == (
        ran.status,
        ran.err,
    )


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ([], "expected --config FILE or --store PATH of an aggregator, got neither"),
        (["--store", "missing.db"], "got no such file"),
        (["--store", "missing.db", "--event", "burn"], "expected --event start, stop"),
        (["--store", "missing.db", "--since", "soon"], "soon"),
    ],
)
def test_a_wrong_question_is_one_line(submerge, options, why):
    """With status 2."""
    ran = submerge("aggregator", "audit", *options)
    assert (2, 1) == (ran.status, ran.err.count("\n"))
    assert why in ran.err
