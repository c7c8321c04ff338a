"""docs/operating.md: whoever is woken by a number or a word finds it there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest
from prometheus_client.parser import text_string_to_metric_families

from submerge_aggregator.metrics import Numbers, exposition
from submerge_aggregator.refusals import REASONS
from submerge_aggregator.survey import standings
from submerge_aggregator.turns import Tallies
from support.house import House

GUIDE = Path(__file__).parents[2] / "docs" / "operating.md"


@pytest.fixture(scope="module")
def named() -> set[str]:
    """All that the guide sets in backquotes."""
    return set(re.findall(r"`([^`\n]+)`", GUIDE.read_text()))


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> set[str]:
    """All metrics that an aggregator with a node and a certificate can show."""
    with House(tmp_path_factory.mktemp("house")) as house:
        house.hears("c", np.random.default_rng(0).normal(size=(60, 6)))
        node, now = house.server.desk.node, house.server._clock()
        assert node is not None
        numbers = Numbers(Tallies(), dict.fromkeys(REASONS, 0), None, False, True, 1.0, [])
        numbers = numbers._replace(standings=standings(node, now))
    text = exposition(numbers, "")[0].decode()
    return {
        f"{family.name}_total" if family.type == "counter" else family.name
        for family in text_string_to_metric_families(text)
        if family.name.startswith("submerge_")
    }


def test_every_metric_is_explained(named, shown):
    """What /metrics can show stands in the guide."""
    assert set() == shown - {re.sub(r"\{.*", "", name) for name in named}


def test_no_metric_is_made_up(shown):
    """What the guide names, alarms included, is there to be scraped."""
    said = set(re.findall(r"\bsubmerge_[a-z_]+(?=[`{ \[)])", GUIDE.read_text()))

    assert set() == said - shown


def test_every_reason_is_explained(named):
    """A word in `submerge_refused_messages_total` sends nobody to the source."""
    assert set() == set(REASONS) - named
