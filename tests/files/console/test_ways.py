"""`--at`: what can be refused without a network, in one line and with status 2."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("cryptography")

from submerge_aggregator.operators.tokens import new_secret
from submerge_files.console.ways import endpoint_of
from support.certified import Certified
from support.commands import shell


@pytest.fixture
def submerge(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    path = Path("night.token")
    path.write_text(new_secret())
    path.chmod(0o600)
    return shell(monkeypatch, capsys)


@pytest.mark.parametrize(
    ("url", "endpoint"),
    [
        ("https://root.example", (True, "root.example", 8472)),
        ("https://root.example:8471/", (True, "root.example", 8471)),
        ("https://[2001:db8::1]:9", (True, "2001:db8::1", 9)),
        ("http://127.0.0.1:9", (False, "127.0.0.1", 9)),
        ("http://localhost", (False, "localhost", 8472)),
    ],
)
def test_a_url_has_a_host_and_a_port(url, endpoint):
    assert endpoint == endpoint_of(url)


TOKEN = ["--token-file", "night.token"]


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["--at", "root.example", *TOKEN], "--at is https://host or https://host:port, got"),
        (["--at", "ftp://root.example", *TOKEN], "--at is https://host"),
        (["--at", "https://root.example/nodes", *TOKEN], "--at is https://host"),
        (["--at", "https://root.example:70000", *TOKEN], "--at is https://host"),
        (["--at", "https://root.example?t=submerge_x", *TOKEN], "a token goes into --token-file"),
        (["--at", "https://a:secret@root.example", *TOKEN], "a user's name: use --token-file"),
        (["--at", "http://root.example", *TOKEN], "expected https:// to another machine"),
        (["--at", "https://root.example"], "--at needs --token-file FILE, or --kit FILE"),
        (["--at", "http://127.0.0.1", "--kit", "x.kit"], "--kit is for https://"),
        (["--at", "http://127.0.0.1", "--ca", "x", *TOKEN], "--ca is for https://"),
        (["--at", "https://root.example", "--store", "a", *TOKEN], "got --store and --at"),
        (["--store", "a", *TOKEN], "--token-file is for --at URL, got no --at"),
        (["--store", "a", "--kit", "x.kit"], "--kit is for --at URL, got no --at"),
        (["--at", "https://x", "--token-file", "none"], "expected a token in none, got: No such"),
        (["--at", "https://x", "--token-file", "."], "is a directory"),
        (["--at", "https://x.invalid", "--kit", "none.kit"], "expected a kit to read"),
        (["--at", "https://x.invalid", "--ca", "none.pem", *TOKEN], "expected ca in PEM form"),
    ],
)
def test_bad_input_is_one_line(submerge, arguments, why):
    """No token, and no password of a url, is in it."""
    ran = submerge("nodes", "list", *arguments)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert why in ran.err
    assert not [secret for secret in ("submerge_x", "secret") if secret in ran.err]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620])
def test_a_token_file_that_others_may_read_is_refused(submerge, mode):
    Path("night.token").chmod(mode)
    ran = submerge("nodes", "list", "--at", "https://x.invalid", *TOKEN)

    assert 2 == ran.status
    assert f"night.token has mode {mode:04o}: others on this machine can read the token" in ran.err


@pytest.mark.parametrize("text", ["", "x", "submerge_short", "two\nlines", "\xff" * 52])
def test_a_file_without_a_token_is_refused_and_not_shown(submerge, text):
    Path("night.token").write_text(text, encoding="latin-1")
    ran = submerge("nodes", "list", "--at", "https://x.invalid", *TOKEN)

    assert 2 == ran.status
    assert (
        "expected a token of `submerge aggregator token new` in night.token, got something else"
        in ran.err
    )


def test_nobody_at_the_address_is_status_1(submerge):
    ran = submerge("nodes", "list", "--at", "https://127.0.0.1:1", *TOKEN)

    assert (1, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert "no aggregator answers at https://127.0.0.1:1: Connection refused" in ran.err


def test_a_kit_that_has_ended_is_named_before_anything_is_sent(submerge, tmp_path):
    kit = Certified(tmp_path).kit("anna", lasts_s=-60.0)
    ran = submerge("nodes", "list", "--at", "https://127.0.0.1:1", "--kit", kit)

    assert (2, 1) == (ran.status, ran.err.count("\n"))
    assert "the certificate of anna in" in ran.err


@pytest.mark.parametrize(
    "command",
    [
        ["nodes", "forget", "c", "--yes"],
        ["nodes", "ban", "c", "--yes"],
        ["alarms"],
        ["alarms", "reject", "c-1"],
        ["nodes", "learn", "pause", "c"],
        ["model", "show"],
        ["model", "save", "x.model"],
        ["model", "histories"],
        ["drill"],
        ["score", "x.csv"],
    ],
)
def test_each_command_that_asks_an_aggregator_takes_it(submerge, command):
    Path("x.csv").write_text("a,b\n1,2\n")
    ran = submerge(*command, "--at", "https://127.0.0.1:1", *TOKEN)

    assert (1, 1) == (ran.status, ran.err.count("\n"))
    assert "no aggregator answers at https://127.0.0.1:1" in ran.err
