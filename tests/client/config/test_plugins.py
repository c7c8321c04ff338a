"""Entry points of installed packages, found without what `importlib.metadata` holds in memory."""

from __future__ import annotations

import io
import json
from importlib.metadata import entry_points

import pytest

from submerge_aggregator.config import NotifyConfig
from submerge_client.alarms.factory import journal_of, line_sinks, names_of
from submerge_client.config.alarms import AlarmsConfig
from submerge_client.config.plugins import plugin, plugins
from submerge_client.config.sections import BadSetting
from submerge_client.config.tomlfile import decoded
from submerge_client.replies import shown_settings

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


PAGER = """
from submerge_client.config.alarms import SinkKind

class Pager(SinkKind, frozen=True, kw_only=True, tag_field="kind", tag="pager"):
    number: str

    def open(self, journal, *, name, group):
        return name, group, self.number
"""


@pytest.fixture
def pager(monkeypatch, tmp_path):
    offers(tmp_path, "pagers", "[submerge.sinks]\npager = pagers:Pager\n")
    (tmp_path / "pagers.py").write_text(PAGER)
    monkeypatch.syspath_prepend(tmp_path)


@pytest.mark.usefixtures("pager")
@pytest.mark.parametrize("section", [AlarmsConfig, NotifyConfig])
def test_a_sink_of_another_package_has_a_name_without_its_secrets(tmp_path, section):
    """In a client and in an aggregator; twice the same is one sink."""
    tables = [{"kind": "pager", "number": each} for each in ("555-1", "555-2", "555-1")]
    alarms = decoded({"sink": tables}, section)

    journal = journal_of(alarms, tmp_path / "store", ["g"])
    sinks = line_sinks(alarms, "g", journal, io.BytesIO())

    assert [("g", "555-1"), ("g", "555-2")] == [(group, number) for _, group, number in sinks]
    names = {name for name, _, _ in sinks}
    assert names == set(names_of(alarms, "g"))
    assert all(name.startswith("g: pager ") and "555" not in name for name in names)


@pytest.mark.usefixtures("pager")
def test_settings_of_such_a_sink_stay_here():
    alarms = decoded({"sink": [{"kind": "pager", "number": "555-1"}]}, AlarmsConfig)

    assert "555" not in json.dumps(shown_settings(alarms))


@pytest.mark.usefixtures("pager")
@pytest.mark.parametrize(
    ("table", "place"),
    [
        ({"kind": "pagr"}, ("sink", 0, "kind")),
        ({}, ("sink", 0, "kind")),
        ({"kind": "pager"}, ("sink", 0, "number")),
        ({"kind": "pager", "nmber": "1", "number": "1"}, ("sink", 0, "nmber")),
        ({"kind": 3}, ("sink", 0, "kind")),
        ({"kind": []}, ("sink", 0, "kind")),
    ],
)
def test_a_mistake_in_it_has_its_place(table, place):
    with pytest.raises(BadSetting) as refused:
        decoded({"sink": [table]}, AlarmsConfig)

    assert place == refused.value.keys
