"""Who is asked in a group's jobs: those that report for it, and may."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from submerge.jobs.machine import ChildrenKnown
from submerge_aggregator.admission.control import AdmissionControl, AdmissionRules
from submerge_aggregator.admission.roster import RevokedList
from submerge_aggregator.jobs.runtime import children_of

GROUP = "room"


def node(banned: str = "", quarantined: str = "") -> Any:
    """A machine with two clients and an aggregator below; `a` has two rows."""
    rows = {
        (name, number): SimpleNamespace(from_client=name != "hall")
        for name, number in (("a", 1), ("a", 2), ("b", 3), ("hall", 4))
    }
    return SimpleNamespace(
        groups=(GROUP, "open"),
        ledger=lambda group: SimpleNamespace(rows=rows) if group == GROUP else None,
        excluded=lambda _: (frozenset(banned), dict.fromkeys(quarantined)),
    )


def test_who_reports_is_asked_and_who_reports_as_a_client_is_one():
    """An aggregator may answer for those below it."""
    names = frozenset({"a", "b", "hall"})

    expected = ChildrenKnown(names, names - {"hall"}, GROUP)
    assert expected == children_of(node(), AdmissionControl(), GROUP)


@pytest.mark.parametrize(
    ("machine", "rules"),
    [
        (node(banned="b"), AdmissionRules()),
        (node(quarantined="b"), AdmissionRules()),
        (node(), AdmissionRules(revoked=RevokedList(nodes=frozenset({"b"})))),
        (node(), AdmissionRules(nodes={GROUP: ["a", "hall"]})),
    ],
    ids=["banned", "quarantined", "revoked", "not listed"],
)
def test_who_may_not_report_is_not_asked(machine, rules):
    """Neither at an operator's order nor by the settings."""
    assert {"a", "hall"} == children_of(machine, AdmissionControl(rules), GROUP).names


@pytest.mark.parametrize("group", ["open", "another"])
def test_without_a_schema_there_is_nobody(group):
    """A group that waits for its schema, and one that is not served."""
    assert ChildrenKnown(frozenset(), group=group) == children_of(node(), AdmissionControl(), group)
