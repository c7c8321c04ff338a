"""deploy/prometheus/submerge.rules.yml: what it asks for is there to be scraped, and explained."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.promtool import PROMTOOL, needs_promtool
from support.scraped import scraped

yaml = pytest.importorskip("yaml")

ROOT = Path(__file__).parents[3]
FILE = ROOT / "deploy" / "prometheus" / "submerge.rules.yml"
GUIDE = (ROOT / "docs" / "operating.md").read_text()
RULES: list[dict[str, Any]] = [
    rule for group in yaml.safe_load(FILE.read_text())["groups"] for rule in group["rules"]
]

METRIC = re.compile(r"\b(submerge_\w+)(?:\{([^}]*)\})?")
MATCHER = re.compile(r"(\w+)(=~|!~|!=|=)[\"']([^\"']*)[\"']")
OF_PROMETHEUS = {"instance", "job"}
"""Labels that a scrape adds."""


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> dict[str, dict[str, set[str]]]:
    return scraped(tmp_path_factory.mktemp("house"))


def texts(rule: dict[str, Any]) -> str:
    """Its expression, and what is asked while it is put into words."""
    return " ".join([rule["expr"], *rule["annotations"].values()])


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_every_rule_is_whole(rule):
    """A name, how urgent it is, what is wrong and what to do, in one line each."""
    assert {"alert", "expr", "labels", "annotations"} == set(rule) - {"for"}
    assert re.fullmatch(r"[A-Z][A-Za-z]+", rule["alert"])
    assert rule["labels"] in ({"severity": "page"}, {"severity": "ticket"})
    assert {"summary", "description"} == set(rule["annotations"])
    assert re.fullmatch(r"\d+[mhd]", rule.get("for", "1m"))
    words = texts(rule)
    assert "\n" not in words
    assert "  " not in words
    for left, right in ("()", "{}", "[]"):
        assert rule["expr"].count(left) == rule["expr"].count(right)


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_what_a_rule_asks_for_is_shown(rule, shown):
    """Metric, labels and their values: a rule on what is never there never fires."""
    for name, within in METRIC.findall(texts(rule)):
        assert name in shown
        for label, how, value in MATCHER.findall(within):
            assert label in shown[name]
            if "%s" not in value:
                wanted = set(value.split("|") if "~" in how else [value])
                assert set() == wanted - shown[name][label]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule["alert"])
def test_the_words_of_an_alert_are_known_of_it(rule, shown):
    """Labels in its words are labels of what it is made of, and of what that is added up by."""
    of_metrics = {label for name, _ in METRIC.findall(rule["expr"]) for label in shown[name]}
    kept = re.findall(r"\bby \(([\w, ]+)\)", rule["expr"])
    by = [set(each.split(", ")) for each in kept]
    said = set(re.findall(r"\$labels\.(\w+)", texts(rule)))

    assert set() == set().union(*by) - of_metrics - OF_PROMETHEUS
    assert set() == said - (set.intersection(*by) if by else of_metrics | OF_PROMETHEUS)


def test_every_alert_is_in_the_guide():
    """And none that is not shipped."""
    alerts = [rule["alert"] for rule in RULES]
    table = re.findall(r"^\| `([A-Z][A-Za-z]+)` \|", GUIDE, re.MULTILINE)

    assert sorted(set(alerts)) == sorted(alerts)
    assert sorted(alerts) == sorted(table)


@needs_promtool
def test_prometheus_takes_them_and_fires_when_it_should():
    """Two aggregators that report one alarm make one alert; the channel to blame may change."""
    for what in (["check", "rules", FILE], ["test", "rules", "rules.promtool.yml"]):
        done = subprocess.run(
            [PROMTOOL, *map(str, what)],
            capture_output=True,
            text=True,
            cwd=Path(__file__).parent,
        )
        assert 0 == done.returncode, done.stdout + done.stderr
