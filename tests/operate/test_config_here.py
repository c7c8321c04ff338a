"""One configuration or none: that of the folder, for every command alike."""

from __future__ import annotations

import re

import pytest

pytest.importorskip("grpc")

from support.commands import shell

ROOT = """node = "root"
store = "root.db"
[listen.grpc]
insecure = true
[groups.room.schema]
channels = ["a", "b"]
"""

BOX = """node = "desk"
folder = "kept"
[sensor]
kind = "host"
[schema]
channels = ["a", "b"]
[page]
"""

COMMANDS = (
    ("nodes",),
    ("nodes", "list", "--json"),
    ("nodes", "ban", "p", "--yes"),
    ("alarms",),
    ("jobs",),
    ("backup", "--to", "a.copy"),
    ("aggregator", "token", "list"),
    ("aggregator", "audit"),
    ("doctor",),
    ("backup", "restore", "a.copy"),
)


@pytest.fixture
def run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    return shell(monkeypatch, capsys)


def takes(told: str) -> bool:
    """Whether a command asks for no configuration, whatever else it lacks."""
    return "--config" not in told


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
@pytest.mark.parametrize(("name", "text"), [("root.toml", ROOT), ("box.toml", BOX)])
def test_that_of_the_folder_is_taken(run, tmp_path, words, name, text):
    """What stops a command here is that no aggregator runs."""
    (tmp_path / name).write_text(text)
    (tmp_path / "a.copy").write_text("no copy")
    done = run(*words)

    assert takes(done.err), done.err
    assert "expected" not in re.sub(r"expected an? (copy|new file|store|audit log).*", "", done.err)


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_of_two_one_is_named_and_without_one_it_is_asked_for(run, tmp_path, words):
    (tmp_path / "a.copy").write_text("no copy")
    none = run(*words)
    (tmp_path / "root.toml").write_text(ROOT)
    (tmp_path / "box.toml").write_text(BOX)
    two = run(*words)

    assert (2, False) == (none.status, takes(none.err))
    assert (2, "expected --config FILE: root.toml and box.toml are both here") == (
        two.status,
        two.err.removeprefix("submerge: ").strip(),
    )


def test_a_store_or_an_address_goes_before_the_folder(run, tmp_path):
    (tmp_path / "root.toml").write_text(ROOT)
    (tmp_path / "box.toml").write_text(BOX)

    assert "other.db" in run("nodes", "--store", "other.db").err


def test_doctor_looks_at_both_parts_of_one_machine(run, tmp_path):
    (tmp_path / "box.toml").write_text(BOX)
    done = run("doctor", "--json")

    assert '"program": "up"' in done.out
    assert all(f'"{what}"' in done.out for what in ("client", "aggregator", "store", "sensor"))
