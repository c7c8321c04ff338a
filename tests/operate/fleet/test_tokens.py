"""`submerge aggregator token`: made once, kept as a hash, and taken back."""

from __future__ import annotations

import json
import os
import stat
import time
from pathlib import Path

import pytest

from submerge_aggregator.operators.tokens import FORM, find, parse_tokens
from support.commands import shell

CONFIG = """
node = "root"
store = "root.db"
[listen.grpc]
insecure = true
[groups.room]
summary.rank = 1
[groups.room.schema]
channels = ["a", "b"]
"""


@pytest.fixture
def token(monkeypatch, capsys, tmp_path):
    """Run `submerge aggregator token` in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    run = shell(monkeypatch, capsys)
    return lambda *arguments: run("aggregator", "token", *arguments, "--store", "root.db")


def tokens() -> Path:
    return Path("root.db.tokens")


def test_a_token_is_in_its_file_alone(token):
    """Which its owner alone may read; it is not printed, and the other file has its hash."""
    ran = token("new", "night", "--scope", "judge")
    secret = Path("night.token").read_text().strip()
    (kept,) = parse_tokens(tokens().read_text())

    assert (0, "night.token: token night, scope judge, without an end\n", "") == ran
    assert FORM.fullmatch(secret)
    assert kept == find([kept], secret, time.time())
    assert secret not in ran.out + tokens().read_text()
    for path in (Path("night.token"), tokens()):
        assert 0o600 == stat.S_IMODE(path.stat().st_mode)


def test_one_with_an_end_says_when(token):
    token("new", "night", "--scope", "read", "--lasts", "90d")
    (listed,) = json.loads(token("list", "--json").out)
    (kept,) = parse_tokens(tokens().read_text())

    assert (90 * 86400, False) == (kept.until - kept.created, listed["ended"])
    assert {"name", "scope", "groups", "created", "until", "ended"} == set(listed)


def test_tokens_are_listed_and_revoked(token):
    assert "no tokens\n" == token("list").out
    for name, scope in (("night", "judge"), ("wall", "read")):
        token("new", name, "--scope", scope)
    assert [["night", "judge"], ["wall", "read"]] == [
        line.split()[:2] for line in token("list").out.splitlines()
    ]
    assert (0, "token night is revoked\n", "") == token("revoke", "night")
    assert ["wall"] == [each.name for each in parse_tokens(tokens().read_text())]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["new", "wall", "--scope", "read"], "there is a token wall: revoke it first"),
        (["new", "b", "--scope", "read", "--to", "taken"], "taken exists: name another file"),
        (["new", "b", "--scope", "all"], "'all' is not one of"),
        (["new", "b"], "Missing option '--scope'"),
        (["new", "a/b", "--scope", "read"], "a token's name is"),
        (["new", "b", "--scope", "read", "--lasts", "soon"], "expected"),
        (
            ["new", "b", "--scope", "read", "--to", "nowhere/x"],
            "cannot write nowhere/x: No such file",
        ),
        (["revoke", "b"], "expected one of the tokens that there are, wall, got b"),
        (["list", "--config", "root.toml"], "got both"),
    ],
)
def test_bad_input_is_one_line_and_changes_nothing(token, arguments, why):
    token("new", "wall", "--scope", "read")
    Path("taken").write_text("mine")
    before = tokens().read_bytes()
    ran = token(*arguments)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert why in ran.err
    assert (before, "mine") == (tokens().read_bytes(), Path("taken").read_text())
    assert not Path("b.token").exists()


def test_a_file_that_is_damaged_is_named(token):
    tokens().write_text("token x\n")
    for arguments in (["list"], ["new", "b", "--scope", "read"], ["revoke", "x"]):
        ran = token(*arguments)
        assert 2 == ran.status
        assert "root.db.tokens: line 1: expected a line as" in ran.err
    assert not Path("b.token").exists()


def test_a_configuration_says_where_tokens_are(monkeypatch, capsys, tmp_path):
    """And one in which nothing takes them is a note."""
    monkeypatch.chdir(tmp_path)
    run, path = shell(monkeypatch, capsys), tmp_path / "root.toml"
    path.write_text(CONFIG)
    ran = run("aggregator", "token", "list", "--config", path)
    assert (0, True) == (ran.status, "has neither [operators] nor [page]" in ran.err)

    path.write_text(
        f'{CONFIG}[operators]\naddress = "127.0.0.1:8472"\ninsecure = true\ntokens = "t.txt"\n'
    )
    assert 0 == run("aggregator", "token", "new", "a", "--scope", "read", "--config", path).status
    assert ["a"] == [each.name for each in parse_tokens(Path("t.txt").read_text())]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may give files away")
def test_the_configuration_of_one_machine_says_where_tokens_are(monkeypatch, capsys, tmp_path):
    """Beside the store of its root, as that of an aggregator does."""
    monkeypatch.chdir(tmp_path)
    tmp_path.joinpath("kept").mkdir()
    tmp_path.joinpath("box.toml").write_text(
        'node = "desk"\nfolder = "kept"\n[sensor]\nkind = "host"\n[schema]\nchannels = ["load.1"]\n'
    )
    ran = shell(monkeypatch, capsys)(
        *("aggregator", "token", "new", "me", "--scope", "read", "--config", "box.toml")
    )

    assert 0 == ran.status
    assert [tmp_path / "kept" / "root.db.tokens"] == list(tmp_path.glob("kept/*tokens*"))


def test_root_makes_the_file_for_the_user_of_its_folder(token, tmp_path):
    """As which the aggregator runs."""
    os.chown(tmp_path, 4711, 4712)
    token("new", "night", "--scope", "judge")

    assert (4711, 4712) == (tokens().stat().st_uid, tokens().stat().st_gid)
    assert 0 == Path("night.token").stat().st_uid
