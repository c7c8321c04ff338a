"""docs/watching.md: each number and word that pages an operator is explained there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from submerge_aggregator.refusals import REASONS
from support.scraped import scraped

GUIDE = Path(__file__).parents[3] / "docs" / "watching.md"


@pytest.fixture(scope="module")
def named() -> set[str]:
    """All that the guide sets in backquotes."""
    return set(re.findall(r"`([^`\n]+)`", GUIDE.read_text()))


@pytest.fixture(scope="module")
def shown(tmp_path_factory) -> set[str]:
    """All metrics that an aggregator with a node and a certificate can show."""
    return set(scraped(tmp_path_factory.mktemp("house")))


def test_every_metric_is_explained(named, shown):
    """What /metrics can show stands in the guide."""
    assert set() == shown - {re.sub(r"\{.*", "", name) for name in named}


def test_no_metric_is_made_up(shown):
    """What the guide names, alarms included, is there to be scraped."""
    said = set(re.findall(r"\bsubmerge_[a-z_]+(?=[`{ \[)])", GUIDE.read_text()))

    assert set() == said - shown


def test_every_reason_is_explained(named):
    """Each reason in `submerge_refused_messages_total` is explained there."""
    assert set() == set(REASONS) - named
