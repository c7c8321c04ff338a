"""Operators' commands take the configuration of `submerge up` as that of a root."""

from __future__ import annotations

import pytest

from support.commands import shell

BOX = """
node = "desk"
folder = "{folder}"
[sensor]
kind = "ndjson"
[schema]
channels = ["a", "b", "c"]
"""


@pytest.mark.parametrize("command", [("jobs",), ("alarms", "list"), ("jobs", "moments")])
def test_the_root_of_one_machine_is_found_by_its_configuration(
    monkeypatch, capsys, tmp_path, command
):
    """Its store is in the folder that the file names: no root is at its socket here."""
    path = tmp_path / "box.toml"
    path.write_text(BOX.format(folder=tmp_path / "kept"))
    ran = shell(monkeypatch, capsys, *command)("--config", path)

    assert 1 == ran.status, ran.err
    assert f"no aggregator answers on {tmp_path / 'kept' / 'root.db'}.sock" in ran.err


def test_a_mistake_in_it_is_one_line(monkeypatch, capsys, tmp_path):
    """As `submerge up` would say it."""
    path = tmp_path / "box.toml"
    path.write_text(BOX.format(folder=tmp_path).replace("folder", "fodler"))
    ran = shell(monkeypatch, capsys, "jobs")("--config", path)

    assert (2, 1) == (ran.status, len(ran.err.splitlines()))
    assert 'did you mean "folder"?' in ran.err
