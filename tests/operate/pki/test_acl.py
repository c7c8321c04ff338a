"""`submerge pki acl`: rules and a roster from the record, by role and group.

What Mosquitto makes of the rules, tests/live/test_mosquitto_acl.py and test_mosquitto_revoked.py
show.
"""

from __future__ import annotations

import stat
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.protocol.permission import ROLES, Permission
from submerge_operate.pki.command import acl_text, roster_text, rules_of
from submerge_operate.pki.issued import Entry
from submerge_proto.wire import topics
from support.commands import shell

NAMES = st.from_regex(r"[A-Za-z0-9._-]{1,8}", fullmatch=True)
PERMISSIONS = st.builds(
    Permission, st.sampled_from(ROLES), st.lists(NAMES, max_size=3, unique=True).map(tuple)
)


def entry(node, permission) -> Entry:
    return Entry(node, (), timedelta(1), permission)


def may(permission, action, topic, *, node="pump-1") -> bool:
    """Whether rules grant an action, as Mosquitto reads them."""
    for rule in rules_of(entry(node, permission)):
        kind, pattern = rule.split(" ")
        if kind in (action, "readwrite") and matches(pattern, topic):
            return True
    return False


def matches(pattern, topic) -> bool:
    wanted, given = pattern.split("/"), topic.split("/")
    if wanted[-1] == "#":
        wanted, given = wanted[:-1], given[: len(wanted) - 1]
    return len(wanted) == len(given) and all(
        w in ("+", g) for w, g in zip(wanted, given, strict=True)
    )


@settings(max_examples=40)
@given(PERMISSIONS, NAMES)
def test_models_are_read_and_reports_are_sent_in_ones_groups_only(permission, group):
    """All of them if there are none; a reader sends nothing, whatever the group."""
    allowed = not permission.groups or group in permission.groups
    sends = permission.role in ("client", "aggregator")
    for kind in ("join", "report"):
        own = topics.up("f", "north", "pump-1", kind, group)
        assert (allowed and sends) == may(permission, "write", own)
    assert allowed == may(permission, "read", topics.model("f", "north", group))


@settings(max_examples=40)
@given(PERMISSIONS, NAMES.filter(lambda name: name != "pump-1"))
def test_nobody_speaks_for_another(permission, other):
    """No role writes what another node does, or reads what is for it."""
    for topic in (
        topics.up("f", "north", other, "report", "g"),
        topics.state("f", "north", other),
        topics.score("f", other),
        topics.alarm("f", other),
        topics.hello("f", other),
        topics.model("f", other, "g"),
        topics.down("f", other, "pump-2", "answer"),
    ):
        assert not may(permission, "write", topic)
    assert not may(permission, "read", topics.down("f", "north", other, "answer"))
    assert not may(permission, "read", topics.up("f", "north", other, "report", "g"))


@given(PERMISSIONS)
def test_only_an_aggregator_is_a_parent(permission):
    """It hears its children, and answers; a client's topic of that name would be a parent's."""
    parent = permission.role == "aggregator"

    assert parent == may(permission, "write", topics.hello("f", "pump-1"))
    assert parent == may(permission, "read", topics.up("f", "pump-1", "n", "report", "g"))
    assert parent == may(permission, "write", topics.down("f", "pump-1", "n", "answer"))


@pytest.mark.parametrize("role", ["client", "aggregator", "operator"])
def test_a_name_alone_opens_no_dashboard(role):
    """Three names may do more, as long as they report nothing."""
    for node, topic in (
        ("dashboard", topics.score("f", "n")),
        ("homeassistant", topics.alarm("f", "n")),
        ("broker", "$SYS/broker/uptime"),
    ):
        assert not may(Permission(role), "read", topic, node=node)
        assert may(Permission("reader"), "read", topic, node=node)


def test_a_kit_from_before_roles_has_what_the_shipped_rules_grant(pytestconfig):
    """The same patterns with its name: nobody is cut off by rules that were made too early."""
    shipped = (pytestconfig.rootpath / "deploy/mosquitto/acl").read_text().splitlines()
    patterns = {
        line.removeprefix("pattern ").replace("%u", "pump-1")
        for line in shipped
        if line.startswith("pattern ")
    }
    own = "write submerge/v1/+/+/up/pump-1/"

    granted = set(rules_of(entry("pump-1", None)))

    words = ("join/+", "report/+", "drill/+", "reply/+", "job/+", "state")
    kinds = {f"{own}{kind}" for kind in words}
    assert (patterns - {f"{own}#"}) | kinds == granted


def test_the_text_has_a_block_for_each_kit():
    """Which Mosquitto finds by the common name; who is revoked, or has no fit name, has none."""
    entries = [entry(node, Permission("reader", ("room",))) for node in ("a", "b", "alarm")]

    text = acl_text(entries, {"b"})

    assert text.split("\n\n", 1)[1].split("\n") == [
        "# role reader, groups room",
        "user a",
        "topic read submerge/v1/+/+/hello",
        "topic read submerge/v1/+/+/model/room",
        "",
        "# b is revoked.",
        "",
        "# alarm is a word of topics, and no node's name.",
        "",
    ]


def test_a_roster_has_what_aggregators_may_rely_on():
    """Node, role and groups; whose kit has no role is none of its business."""
    entries = [
        entry("a", Permission("client", ("room", "hall"))),
        entry("b", Permission("aggregator")),
        entry("c", None),
        entry("d", Permission("client")),
    ]

    assert "node,role,groups\na,client,room hall\nb,aggregator,\n" == roster_text(entries, {"d"})


def test_the_command_writes_files_as_a_whole(monkeypatch, capsys, tmp_path):
    """Rules for Mosquitto's group, a roster for all; to standard output by default."""
    monkeypatch.chdir(tmp_path)
    submerge = shell(monkeypatch, capsys)
    submerge("pki", "init")
    submerge("pki", "issue", "pump-1", "pump-2", "--group", "room")
    submerge("pki", "revoke", "pump-2")

    assert 0 == submerge("pki", "acl", "--out", "acl", "--roster", "roster.csv").status

    assert "node,role,groups\npump-1,client,room\n" == (tmp_path / "roster.csv").read_text()
    assert submerge("pki", "acl").out == (tmp_path / "acl").read_text()
    assert "user pump-2" not in (tmp_path / "acl").read_text()
    modes = [stat.S_IMODE((tmp_path / each).stat().st_mode) for each in ("acl", "roster.csv")]
    assert [0o640, 0o644] == modes
    ran = submerge("pki", "acl", "--out", "none/acl")
    assert (2, True) == (ran.status, "cannot write none/acl: No such file" in ran.err)
