"""The house rules that can be counted: each list of `support.structure` is empty."""

from __future__ import annotations

import pytest

from support import structure


@pytest.mark.parametrize("what", structure.LISTS)
def test_a_rule_of_the_house_holds(what):
    """No file too long, no folder too full, no name twice, and no word that we left behind."""
    assert [] == structure.LISTS[what]()


def test_every_exception_is_needed():
    """An exception whose reason has gone goes with it."""
    assert structure.unused_exceptions() == []


def test_a_word_inside_a_name_is_found():
    """Identifiers are cut where a reader would cut them."""
    assert {"wish", "view"} == structure.parts_of("_WishView")
    assert {"told", "by"} == structure.parts_of("told_by")
    assert {"http", "answer"} == structure.parts_of("HTTPAnswer")
