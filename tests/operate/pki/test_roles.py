"""Roles and groups: in certificates, in the record, in lists of nodes; kits from before."""

from __future__ import annotations

import json

import pytest
from cryptography import x509
from cryptography.x509.oid import ExtendedKeyUsageOID

from submerge.protocol.names import RESERVED, server_name
from submerge.protocol.permission import Permission
from submerge_operate.pki.directory import read_contents
from support.commands import shell


@pytest.fixture
def submerge(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return shell(monkeypatch, capsys)


@pytest.fixture
def pki(submerge, tmp_path):
    """An authority that was just made."""
    assert 0 == submerge("pki", "init").status
    return tmp_path / "pki"


def certificate(pki, node) -> x509.Certificate:
    return x509.load_pem_x509_certificates((pki / f"kits/{node}.kit").read_bytes())[0]


def names(pki, node, kind) -> list[str]:
    """Alternative names of one kind."""
    extensions = certificate(pki, node).extensions
    found = extensions.get_extension_for_class(x509.SubjectAlternativeName)
    return found.value.get_values_for_type(kind)


def serves(pki, node) -> bool:
    extensions = certificate(pki, node).extensions
    usage = extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    return ExtendedKeyUsageOID.SERVER_AUTH in usage


def record(pki, node) -> dict:
    return json.loads((pki / "issued.json").read_text())["kits"][node]


def test_a_certificate_says_role_and_groups(submerge, pki):
    """As URIs, in the order that was given, each once; the head says so to people."""
    groups = ("--group", "room", "--group", "hall", "--group", "room")
    submerge("pki", "issue", "pump-1", "--role", "client", *groups)

    uris = ["submerge:role=client", "submerge:group=room", "submerge:group=hall"]
    assert uris == names(pki, "pump-1", x509.UniformResourceIdentifier)
    assert (
        Permission("client", ("room", "hall"))
        == read_contents(pki / "kits/pump-1.kit").entry.permission
    )
    assert "\nrole: client\ngroups: room hall\n-----" in (pki / "kits/pump-1.kit").read_text()


@pytest.mark.parametrize(
    ("options", "role"),
    [((), "client"), (("--host", "x.org"), "aggregator"), (("--role", "operator"), "operator")],
)
def test_the_role_goes_by_hosts_unless_it_is_named(submerge, pki, options, role):
    """A node with hosts is taken for an aggregator, and another for a client."""
    submerge("pki", "issue", "a", *options)

    assert [f"submerge:role={role}"] == names(pki, "a", x509.UniformResourceIdentifier)


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--role", "aggregator"), True),
        (("--role", "reader", "--host", "x.org"), True),
        (("--role", "client"), False),
        (("--role", "reader"), False),
        (("--role", "operator"), False),
    ],
)
def test_only_aggregators_and_what_has_hosts_can_serve(submerge, pki, options, expected):
    """An aggregator with children behind a broker has no host, and serves all the same."""
    submerge("pki", "issue", "a", *options)

    assert expected == serves(pki, "a")


@pytest.mark.parametrize("node", ["root", "Root_1", "x" * 64])
def test_an_aggregator_has_the_name_that_children_ask_for(submerge, pki, node):
    """Beside its hosts, also if its name is none of the DNS; nothing else has such a name."""
    submerge("pki", "issue", node, "--host", "x.org")
    submerge("pki", "issue", "broker", "--role", "reader", "--host", "x.org")

    assert ["x.org", server_name(node)] == names(pki, node, x509.DNSName)
    assert ["x.org"] == names(pki, "broker", x509.DNSName)
    assert ("x.org",) == read_contents(pki / f"kits/{node}.kit").entry.hosts


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--role", "client", "--host", "x.org"), "only role aggregator and role reader have"),
        (("--role", "operator", "--host", "x.org"), "only role aggregator and role reader have"),
        (("--role", "pump"), "'pump' is not one of 'client', 'aggregator', 'reader', 'operator'"),
        (("--group", "a b"), "a group's name is 1 to 64 of A-Z a-z 0-9 . _ -, got 'a b'"),
        (("--host", "root.submerge.invalid"), "an aggregator's kit names it as"),
    ],
)
def test_what_no_kit_can_have_is_one_line(submerge, pki, options, said):
    """And nothing is made."""
    ran = submerge("pki", "issue", "a", *options)

    assert (2, True, 1) == (ran.status, said in ran.err, ran.err.count("\n"))
    assert [] == list((pki / "kits").iterdir())


@pytest.mark.parametrize("word", sorted(RESERVED))
def test_no_node_is_called_as_a_word_of_topics(submerge, pki, word):
    """Nor in capitals: rules of a broker would let it write, or read, for others."""
    for name in (word, word.title()):
        ran = submerge("pki", "issue", name)

        assert (2, True) == (ran.status, "is a word of MQTT topics: choose another" in ran.err)
    assert [] == list((pki / "kits").iterdir())


def test_a_renewed_kit_keeps_role_and_groups(submerge, pki):
    """Until others are named: one of them leaves the other as it is."""
    submerge("pki", "issue", "a", "--role", "reader", "--group", "room")

    submerge("pki", "renew", "a")
    assert ("reader", ["room"]) == (record(pki, "a")["role"], record(pki, "a")["groups"])
    submerge("pki", "renew", "a", "--role", "client")
    assert ("client", ["room"]) == (record(pki, "a")["role"], record(pki, "a")["groups"])
    submerge("pki", "renew", "a", "--group", "hall")
    assert ("client", ["hall"]) == (record(pki, "a")["role"], record(pki, "a")["groups"])
    submerge("pki", "renew", "a", "--every-group")
    assert ("client", []) == (record(pki, "a")["role"], record(pki, "a")["groups"])
    assert 2 == submerge("pki", "renew", "--all", "--role", "client").status


def test_a_server_that_becomes_a_client_has_no_hosts_any_more(submerge, pki):
    """Else its renewal would be refused, and its certificate be a server's."""
    submerge("pki", "issue", "a", "--host", "x.org")

    assert 0 == submerge("pki", "renew", "a", "--role", "client").status
    assert (False, []) == (serves(pki, "a"), record(pki, "a")["hosts"])


def from_before(pki, *nodes) -> None:
    """Make these kits ones from before there were roles, as later versions have kept them."""
    path = pki / "issued.json"
    old = json.loads(path.read_text())
    for node in nodes:
        old["kits"][node] |= {"role": "", "groups": [], "past": []}
    path.write_text(json.dumps(old))


def test_a_record_of_version_1_is_refused_and_left_as_it_is(submerge, pki):
    """The line says what takes it over, and when it was written."""
    submerge("pki", "issue", "south")
    path = pki / "issued.json"
    path.write_text(path.read_text().replace('"version": 2', '"version": 1'))
    before = path.read_bytes()
    for command in (("show",), ("renew", "south"), ("issue", "north")):
        ran = submerge("pki", *command)

        assert (2, "") == (ran.status, ran.out)
        assert "submerge before 28 November 2026 wrote it; renew a kit with that of" in ran.err
    assert before == path.read_bytes()


def test_a_kit_from_before_has_no_role_until_one_is_named(submerge, pki):
    """A nightly renewal must not make an aggregator behind a broker a client."""
    submerge("pki", "issue", "south")
    from_before(pki, "south")

    ran = submerge("pki", "renew", "south")
    extensions = certificate(pki, "south").extensions
    assert not [each for each in extensions if isinstance(each.value, x509.SubjectAlternativeName)]
    assert "without a role, as before: 1, the first is south: submerge pki renew" in ran.err
    assert "south, no role, until" in ran.out
    assert 2 == submerge("pki", "renew", "south", "--group", "room").status
    submerge("pki", "renew", "south", "--role", "aggregator")
    assert [server_name("south")] == names(pki, "south", x509.DNSName)


def test_a_record_from_before_is_read_and_shown(submerge, pki):
    """With a dash where others have a role."""
    submerge("pki", "issue", "a", "--group", "room")
    submerge("pki", "issue", "b")
    from_before(pki, "a", "b")
    submerge("pki", "renew", "b", "--role", "reader", "--group", "hall")

    lines = [line.split() for line in submerge("pki", "show").out.splitlines()]
    shown = json.loads(submerge("pki", "show", "--json").out)["kits"]

    assert ["a", "-", "-", "-"] in [line[:4] for line in lines]
    assert ["b", "reader", "hall", "-"] in [line[:4] for line in lines]
    assert [("", []), ("reader", ["hall"])] == [(each["role"], each["groups"]) for each in shown]


# -- lists of nodes ----------------------------------------------------------------------


def listed(pki, *lines: str) -> str:
    (pki.parent / "nodes.csv").write_text("\n".join([*lines, ""]))
    return "nodes.csv"


def test_a_list_has_roles_and_groups(submerge, pki):
    """Several groups in a cell, as hosts; an empty cell goes by hosts."""
    lines = ("node,hosts,role,groups", "south,,aggregator,", "a,,,room hall", "root,x.org,,")

    assert 0 == submerge("pki", "kits", listed(pki, *lines)).status
    assert ("aggregator", []) == (record(pki, "south")["role"], record(pki, "south")["groups"])
    assert ("client", ["room", "hall"]) == (record(pki, "a")["role"], record(pki, "a")["groups"])
    assert "aggregator" == record(pki, "root")["role"]


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("a,,pump,", "nodes.csv, line 2, column role or groups: expected a role, client, aggr"),
        ("alarm,,,", "nodes.csv, line 2, column node: alarm is a word of MQTT topics"),
        ("a,,,room/1", "nodes.csv, line 2, column role or groups: a group's name is 1 to 64"),
        ("a,x.org,client,", "nodes.csv, line 2, column role or groups: a: only role aggregator"),
    ],
)
def test_a_mistake_in_a_list_is_named(submerge, pki, line, said):
    """File, line and column."""
    ran = submerge("pki", "kits", listed(pki, "node,hosts,role,groups", line))

    assert (2, True) == (ran.status, said in ran.err)


def test_a_list_from_before_changes_no_role(submerge, pki):
    """It names none, so a kit's is left alone, also where kits are renewed by the list."""
    submerge("pki", "issue", "a", "--role", "reader")

    ran = submerge("pki", "kits", listed(pki, "node,hosts", "a,"), "--renew")

    assert ("pki/kits: kits made: 0, left as they were: 1\n", "") == (ran.out, ran.err)


def test_another_role_in_a_list_is_said_with_the_command_for_it(submerge, pki):
    """Or made so at once, with --renew: that is the way to give a whole fleet roles."""
    submerge("pki", "issue", "a", "b")
    submerge("pki", "issue", "c", "--group", "room")
    from_before(pki, "a")
    lines = ("node,role,groups", "a,client,room", "b,client,", "c,client,")

    ran = submerge("pki", "kits", listed(pki, *lines))
    assert [
        f"{said}: for those in the list, submerge pki renew {command}"
        for said, command in (
            ("a keeps its role, none in groups all", "a --role client --group room"),
            ("c keeps its role, client in groups room", "c --role client --every-group"),
        )
    ] == ran.err.splitlines()
    ran = submerge("pki", "kits", "nodes.csv", "--renew")
    assert ("pki/kits: kits made: 2, left as they were: 1\n", "") == (ran.out, ran.err)
    assert ("client", ["room"]) == (record(pki, "a")["role"], record(pki, "a")["groups"])
    assert [] == record(pki, "c")["groups"]


@pytest.mark.parametrize(("heading", "meant"), [("group", "groups"), ("rolle", "role")])
def test_a_column_that_is_almost_ours_is_not_ignored(submerge, pki, heading, meant):
    """Without its groups a kit would hold for all of them."""
    ran = submerge("pki", "kits", listed(pki, f"node,{heading}", "a,room"))

    assert 2 == ran.status
    assert f"nodes.csv, line 1: expected the column {meant}, got {heading}: rename it" in ran.err


def test_a_spreadsheet_may_begin_headings_with_capitals(submerge, pki):
    assert 0 == submerge("pki", "kits", listed(pki, "Node,Role,Groups", "a,reader,room")).status
    assert ("reader", ["room"]) == (record(pki, "a")["role"], record(pki, "a")["groups"])
