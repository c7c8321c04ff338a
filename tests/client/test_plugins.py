"""Entry points of installed packages, found without what `importlib.metadata` holds in memory."""

from __future__ import annotations

from importlib.metadata import entry_points

import pytest

from submerge_client.plugins import plugin, plugins

GROUPS = ("submerge.commands", "submerge.clusters", "submerge.roots", "submerge.sensors")


def offers(folder, distribution, text):
    (folder / f"{distribution}-1.0.dist-info").mkdir(parents=True)
    (folder / f"{distribution}-1.0.dist-info" / "entry_points.txt").write_text(text)


@pytest.mark.parametrize("group", GROUPS)
def test_it_finds_what_the_standard_library_finds(group):
    expected = {(each.name, each.value) for each in entry_points(group=group)}

    assert expected == {(each.name, each.value) for each in plugins(group)}


def test_ours_come_first_and_of_two_versions_the_first(monkeypatch, tmp_path):
    text = "# ours\n[submerge.x]\n{} = json:{}\n\n[console_scripts]\nother = json:load\n"
    offers(tmp_path / "a", "strange_one", text.format("a", "loads"))
    offers(tmp_path / "a", "submerge", text.format("z", "dumps"))
    offers(tmp_path / "b", "Strange_One", text.format("b", "load [extra]"))
    (tmp_path / "no-1.0.dist-info").mkdir()
    paths = [str(tmp_path / "a"), str(tmp_path / "none"), str(tmp_path), str(tmp_path / "b")]
    monkeypatch.setattr("sys.path", paths)

    found = [(each.name, each.value, each.distribution) for each in plugins("submerge.x")]

    assert [("z", "json:dumps", "submerge"), ("a", "json:loads", "strange-one")] == found
    assert "{}" == plugin("submerge.x", "z")({})
    assert plugin("submerge.x", "b") is None
