"""The command, whatever it runs: where its words go."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from submerge_operate import cli
from support.commands import shell

SUBMERGE = Path(sys.executable).with_name("submerge")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_is_one_line():
    """Status 1: the input is not wrong."""
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [SUBMERGE, "lab", "simulate", "--hours", "0.2", "--quiet"],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
        )

    assert 1 == done.returncode
    assert "submerge: the disk is full: free some space\n" == done.stderr


@pytest.mark.parametrize(
    ("words", "hint"),
    [(["alarm"], "Did you mean 'alarms'?"), (["agregator"], "Did you mean 'aggregator'?")],
)
def test_an_unknown_subcommand_names_the_nearest(monkeypatch, capsys, words, hint):
    """Status 2 and one line."""
    ran = shell(monkeypatch, capsys)(*words)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert hint in ran.err


PLAIN = """
import importlib.abc, io, sys
from contextlib import redirect_stderr, redirect_stdout

class Plain(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        top = name.partition(".")[0]
        if top in {"msgspec", "google", "grpc", "paho", "starlette", "uvicorn", "psutil", "jinja2",
                   "prometheus_client", "grpc_health", "pyarrow", "cryptography", "matplotlib"}:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Plain())
from submerge_operate import cli
for line in sys.stdin.read().splitlines():
    sys.argv, said, status = ["submerge", *line.split()], io.StringIO(), 0
    with redirect_stderr(said), redirect_stdout(said):
        try:
            cli.main()
        except SystemExit as end:
            status = end.code
    print(status, said.getvalue().count("\\n"), said.getvalue().rsplit("pip install ")[-1].strip())
"""
NEEDS = {
    "init": "aggregator,host",
    "init --from x.csv": "aggregator,host",
    "up --config x.toml": "aggregator,host",
    "client --config x.toml": "client",
    "aggregator --config x.toml": "aggregator",
    "aggregator page --config x.toml": "page",
    "nodes list --config x.toml": "aggregator",
    "alarms --config x.toml": "aggregator",
    "nodes learn pause n --config x.toml": "aggregator",
    "jobs kmeans x.csv --clusters 2 --out z.npz": "files",
    "jobs --config x.toml": "files",
    "aggregator audit --config x.toml": "aggregator",
    "aggregator token list --config x.toml": "aggregator",
    "backup --config x.toml --to y": "aggregator",
    "backup restore x --config y": "aggregator",
    "pki init": "pki",
    "pki kits x.csv": "pki",
    "doctor --config x.toml": "client",
    "fit x.csv -o x.model": "files",
    "detect x.csv --model x.model": "files",
    "score x.csv --model x.model": "files",
    "drill x.csv --model x.model": "files",
    "model show x.model": "files",
    "model export x.model --as c -o x.c": "files",
    "model compare x.model x.model": "files",
}
"""A call of each command of submerge's own wheel, and the extra that it names."""

LAB = ("demo", "replay x.csv", "lab crowd --into grpc://x", "lab simulate", "lab simulate-jobs")


@pytest.mark.slow
def test_without_extras_each_command_says_what_to_install(tmp_path):
    """A plain install has no other words than one line, with the extra, and status 2."""
    lines = [f"{i},{i % 7}.5,{i % 5}.5" for i in range(60)]
    (tmp_path / "x.csv").write_text("\n".join(["time,a,b", *lines]))
    done = subprocess.run(
        [sys.executable, "-c", PLAIN],
        input="\n".join([*NEEDS, *LAB]),
        cwd=tmp_path,
        capture_output=True,
        text=True,
    )

    expected = [f"2 1 'submerge[{extra}]'" for extra in NEEDS.values()] + [
        "2 1 submerge-lab"
    ] * len(LAB)
    assert dict(zip([*NEEDS, *LAB], expected, strict=True)) == dict(
        zip([*NEEDS, *LAB], done.stdout.splitlines(), strict=True)
    )
    called = {call.split()[0] for call in [*NEEDS, *LAB]}
    assert called == {words for words in cli.commands() if " " not in words}


def test_there_are_few_commands():
    """A newcomer reads all of them."""
    assert 18 == len([words for words in cli.commands() if " " not in words])


def test_without_a_command_it_says_what_to_do_first(monkeypatch, capsys):
    """With files, with a broker, with a fleet; and where all commands are."""
    ran = shell(monkeypatch, capsys)()

    assert (0, "") == (ran.status, ran.err)
    assert ran.out.count("\n") < 12
    for words in ("submerge fit", "submerge init", "submerge aggregator page", "submerge --help"):
        assert words in ran.out


@pytest.mark.parametrize("earlier", cli.EARLIER)
def test_earlier_words_do_the_same_and_name_the_new_ones(monkeypatch, capsys, earlier):
    """One line on standard error; --help does not list them."""
    run = shell(monkeypatch, capsys)
    today = cli.EARLIER[earlier]

    before, now = run(earlier, "--help"), run(*today.split(), "--help")

    assert (0, now.out) == (before.status, before.out)
    assert f"submerge: `submerge {earlier}` is now `submerge {today}`\n" == before.err
    assert f"\n  {earlier} " not in run("--help").out


def test_without_the_laboratory_it_says_what_to_install(monkeypatch, capsys):
    """Devices do without."""
    others = {words: line for words, line in cli.commands().items() if line.install != cli.LAB}
    monkeypatch.setattr(cli, "commands", lambda: others | cli.ABSENT)

    for words in (["replay", "x.csv"], ["lab", "simulate"], ["simulate", "--hours", "1"]):
        ran = shell(monkeypatch, capsys)(*words)

        assert (2, "") == (ran.status, ran.out)
        assert "pip install submerge-lab" in ran.err.splitlines()[-1]


@pytest.mark.parametrize("words", [words for words in cli.commands() if " " in words])
def test_a_command_in_a_group_of_another_package_is_listed_there(monkeypatch, capsys, words):
    """As if it had always been there."""
    group, _, name = words.partition(" ")

    assert f"  {name} " in shell(monkeypatch, capsys)(group, "--help").out
