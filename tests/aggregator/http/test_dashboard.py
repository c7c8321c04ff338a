"""deploy/grafana/submerge.json: what it draws is there to be scraped; and its panels are whole.

Grafana itself is not run here. Prometheus's own tool reads the expressions.
"""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.promtool import PROMTOOL, needs_promtool
from support.scraped import scraped

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[3]
DASHBOARD: dict[str, Any] = json.loads((ROOT / "deploy/grafana/submerge.json").read_text())
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
TARGETS = [target for panel in PANELS for target in panel["targets"]]

METRIC = re.compile(r"\b(submerge_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r"(\w+)(=~|!~|!=|=)\"([^\"]*)\"")
OF_PROMETHEUS = {"instance", "job"}
"""Labels that a scrape adds."""

SHOWN = (
    *("submerge_readings", "submerge_alarms_open", "submerge_watch_nodes"),
    *("submerge_model_age_seconds", "submerge_refused_messages_total", "submerge_commits_total"),
    *("submerge_model_rejected_total", "submerge_unanswered_bytes", "submerge_staleness_seconds"),
    "submerge_backup_timestamp_seconds",
)
"""What a fleet is watched by."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> dict[str, dict[str, set[str]]]:
    return scraped(tmp_path_factory.mktemp("house"))


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target["legendFormat"])
def test_what_a_panel_asks_for_is_shown(target, shown):
    """Metric, labels and their values: a panel of what is never there stays empty."""
    found = METRIC.findall(target["expr"])
    assert found
    for name, within in found:
        assert name in shown
        for label, how, value in MATCHER.findall(within):
            assert label in shown[name]
            if not value.startswith("$"):
                wanted = set(value.split("|") if "~" in how else [value])
                assert set() == wanted - shown[name][label]


@pytest.mark.parametrize("target", TARGETS, ids=lambda target: target["legendFormat"])
def test_each_line_is_named_by_labels_that_it_has(target, shown):
    """Each expression says which labels it keeps, and its legend names all of them."""
    ((kept),) = re.findall(r"\bby \(([\w, ]+)\)", target["expr"])
    labels = set(kept.split(", "))
    of_metrics = {label for name, _ in METRIC.findall(target["expr"]) for label in shown[name]}

    assert set() == labels - of_metrics - OF_PROMETHEUS
    assert labels == set(re.findall(r"\{\{(\w+)\}\}", target["legendFormat"]))


def test_it_shows_what_a_fleet_is_watched_by():
    drawn = {name for target in TARGETS for name, _ in METRIC.findall(target["expr"])}

    assert set() == set(SHOWN) - drawn


def test_groups_to_choose_from_are_those_that_are_scraped(shown):
    """The variable `group` of the dashboard, and where its data come from."""
    source, group = DASHBOARD["templating"]["list"]
    metric, label = re.fullmatch(r"label_values\((\w+), (\w+)\)", group["query"]).groups()  # type: ignore[union-attr]

    assert label in shown[metric]
    assert ("datasource", "prometheus") == (source["type"], source["query"])
    assert {"${datasource}"} == {panel["datasource"]["uid"] for panel in PANELS}


def test_panels_have_a_title_a_text_a_unit_and_a_place_of_their_own():
    numbers = [panel["id"] for panel in DASHBOARD["panels"]]
    assert sorted(set(numbers)) == sorted(numbers)
    covered: set[tuple[int, int]] = set()
    for panel in DASHBOARD["panels"]:
        place = panel["gridPos"]
        squares = {
            (place["x"] + i, place["y"] + j) for i in range(place["w"]) for j in range(place["h"])
        }
        assert set() == squares & covered
        assert place["x"] + place["w"] <= 24
        covered |= squares
    for panel in PANELS:
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"]
        letters = [target["refId"] for target in panel["targets"]]
        assert [chr(ord("A") + i) for i in range(len(letters))] == letters


@needs_promtool
def test_prometheus_reads_each_expression(tmp_path):
    """As the expression of a recording rule."""
    rules = [
        {"record": f"panel:{i}", "expr": target["expr"].replace("$group", ".*")}
        for i, target in enumerate(TARGETS)
    ]
    file = tmp_path / "panels.yml"
    file.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}))
    done = subprocess.run([PROMTOOL, "check", "rules", str(file)], capture_output=True, text=True)

    assert 0 == done.returncode, done.stdout + done.stderr
    assert f"{len(TARGETS)} rules found" in done.stdout
