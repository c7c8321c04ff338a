"""`submerge pki kits`: a list of nodes, judged as a whole, made once."""

from __future__ import annotations

import json
import os

import pytest

from submerge_operate.pki.directory import read_contents
from support.commands import shell


@pytest.fixture
def submerge(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    run = shell(monkeypatch, capsys)
    assert 0 == run("pki", "init").status
    return run


@pytest.fixture
def kits(tmp_path):
    return tmp_path / "pki/kits"


def listed(tmp_path, *lines: str, name: str = "nodes.csv") -> str:
    (tmp_path / name).write_text("\n".join([*lines, ""]))
    return name


def test_each_node_of_a_list_gets_a_kit(submerge, tmp_path, kits):
    """Servers with their hosts, clients without; what else a list says is ignored aloud."""
    lines = ("site, node ,hosts", "north, east ,east.local 10.0.0.5", "", "north,pump-3,")

    ran = submerge("pki", "kits", listed(tmp_path, *lines), "--lasts", "10m")

    assert (0, "pki/kits: kits made: 2, left as they were: 0\n") == (ran.status, ran.out)
    assert "nodes.csv: ignored columns: site\n" == ran.err
    assert ("east.local", "10.0.0.5") == read_contents(kits / "east.kit").entry.hosts
    assert () == read_contents(kits / "pump-3.kit").entry.hosts


def test_a_list_may_be_run_again(submerge, tmp_path, kits):
    """Who has a kit keeps it; who was added gets one."""
    submerge("pki", "kits", listed(tmp_path, "node", "a", "b"))
    before = (kits / "a.kit").read_bytes()

    ran = submerge("pki", "kits", listed(tmp_path, "node", "a", "b", "c"), "--json")

    reported = json.loads(ran.out)
    assert [["c"], ["a", "b"]] == [[e["node"] for e in reported[key]] for key in ("made", "left")]
    assert before == (kits / "a.kit").read_bytes()


def test_a_spreadsheets_list_is_read(submerge, tmp_path, kits):
    """With its mark in front, its line ends, its quotes, and a row of nothing."""
    (tmp_path / "nodes.csv").write_bytes(b'\xef\xbb\xbfnode,hosts\r\n"a","x.org 10.0.0.1"\r\n,\r\n')

    assert 0 == submerge("pki", "kits", "nodes.csv").status
    assert ("x.org", "10.0.0.1") == read_contents(kits / "a.kit").entry.hosts


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (("node,hosts", "ok,", "a b,"), "nodes.csv, line 3, column node: a name has 1 to 64"),
        (("node,hosts", "ok,", ",10.0.0.1"), "nodes.csv, line 3, column node: a name has"),
        (("node,hosts", "ok,", "", "b,x:1"), "nodes.csv, line 4, column hosts: expected a host"),
        (("node", "ok", "b", "ok"), "line 4, column node: expected each node once, got ok, and ok"),
        (("node", "ok", "OK"), "line 3, column node: expected each node once, got OK, and ok in"),
        (
            ("node,hosts", "ok,a,b"),
            "line 2: expected 2 cells, got 3: write several hosts or",
        ),
        (("name,hosts", "ok,"), "line 1: expected a heading with a column `node`"),
        (("node;hosts", "ok;"), "line 1: expected a heading with a column `node`, comma-separated"),
        (("node,node", "ok,"), "line 1: expected one column node, got several"),
        (("node",), "expected nodes in nodes.csv, got only a heading"),
        ((), "line 1: expected a heading with a column `node`, comma-separated, got nothing"),
        (("node", "ok", '"c'), "nodes.csv, line 3: "),
    ],
)
def test_a_mistake_is_named_before_anything_is_made(submerge, tmp_path, kits, lines, said):
    """File, line and column; the good lines before it make no kits either."""
    ran = submerge("pki", "kits", listed(tmp_path, *lines))

    assert (2, "") == (ran.status, ran.out)
    assert said in ran.err
    assert 1 == ran.err.count("\n")
    assert [] == os.listdir(kits)


def test_a_list_that_cannot_be_read_is_said(submerge, tmp_path):
    """None, or of other bytes."""
    (tmp_path / "nodes.csv").write_bytes(b"node\n\xff\xfe\n")

    assert "expected text in UTF-8 in nodes.csv" in submerge("pki", "kits", "nodes.csv").err
    assert (
        "expected a list of nodes in none.csv, got: No such"
        in submerge("pki", "kits", "none.csv").err
    )


def test_hosts_that_have_moved_are_told_with_the_command_for_it(submerge, tmp_path, kits):
    """A kit that is out there is not changed by a list."""
    submerge("pki", "kits", listed(tmp_path, "node,hosts", "east,10.0.0.5", "west,w.org 10.0.0.8"))

    ran = submerge(
        "pki", "kits", listed(tmp_path, "node,hosts", "east,10.0.0.6", "west,10.0.0.8 w.org")
    )

    assert (
        "east keeps its hosts, 10.0.0.5: for those in the list,"
        " submerge pki renew east --host 10.0.0.6\n"
    ) == ran.err
    assert ("10.0.0.5",) == read_contents(kits / "east.kit").entry.hosts


def test_what_ends_soon_or_is_gone_is_counted(submerge, tmp_path, kits):
    """And the command for it is named."""
    name = listed(tmp_path, "node", "a", "b")
    submerge("pki", "kits", name, "--lasts", "5d")
    (kits / "b.kit").unlink()

    ran = submerge("pki", "kits", name)

    assert "ending soon, or ended: 2 (submerge pki renew --all)\n" in ran.out
    assert "no longer there: 1 (submerge pki renew NODE" in ran.out


@pytest.mark.slow
def test_five_hundred_nodes_get_kits_of_their_own(submerge, tmp_path, kits):
    """All in one go, no two with one number."""
    names = [f"n{i}" for i in range(500)]

    assert 0 == submerge("pki", "kits", listed(tmp_path, "node", *names)).status

    assert {f"{name}.kit" for name in names} == set(os.listdir(kits))
    record = json.loads((kits.parent / "issued.json").read_text())["kits"]
    assert 500 == len({each["serial"] for each in record.values()})
