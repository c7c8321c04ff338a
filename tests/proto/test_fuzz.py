"""The short form of fuzzing: `python tests/support/fuzz.py --minutes 10` is the long one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from submerge.aggregator.rows.ledger import Ledger
from submerge.protocol.messages import Reason
from submerge_proto.wire import columns
from support import fuzz


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_liars_change_nothing_and_break_nothing(seed):
    """Fifteen hundred messages, each damaged in its way; what holds is said in support/fuzz.py."""
    tally = fuzz.Tally()
    fuzz.fuzz(seed, tally, executions=1500)

    # Or else it would show nothing: many come as far as a node, and many are refused.
    assert 450 < sum(tally.taken.values()) < 1200
    assert {"malformed", "name", "version", "range", "shape"} <= set(tally.refused)
    assert tally.answers["ack"] > 75


def _changes_rows(monkeypatch):
    judged = Ledger._refusal

    def refusal(ledger, report, row):
        verdict = judged(ledger, report, row)
        if verdict is not None and verdict.reason is not Reason.ACK and row is not None:
            key = report.stamp.node, report.stamp.incarnation
            ledger.rows[key] = replace(row, digest=b"")
        return verdict

    monkeypatch.setattr(Ledger, "_refusal", refusal)


MUTANTS = {
    "numbers are not looked at": lambda m: m.setattr(columns, "check_numbers", lambda *_: None),
    "columns may be any": lambda m: m.setattr(columns, "_orthonormal", lambda rows, _: rows),
    "a refusal changes a row": _changes_rows,
    "a row too many": lambda m: m.setattr(Ledger, "_make_room", lambda *_: None),
}


FIRST = {"columns may be any": 50}
"""Where the search begins, if not at 0: one in twelve worlds shows it, none of the first ten."""


def _several(first, worlds):
    for seed in range(first, first + worlds):
        fuzz.fuzz(seed, fuzz.Tally(), executions=1500)


@pytest.mark.soak
@pytest.mark.parametrize("mutant", MUTANTS)
def test_it_finds_what_is_put_there_to_be_found(monkeypatch, mutant):
    """A check left out, a rule broken: in one of ten worlds something goes wrong."""
    MUTANTS[mutant](monkeypatch)

    with pytest.raises(fuzz.Failure, match="seed"):
        _several(FIRST.get(mutant, 0), 10)
