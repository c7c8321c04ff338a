"""Which summaries a group takes: of its schema, and of a rank that is not out of proportion."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from submerge import Schema
from submerge.protocol.messages import Counts, Reason
from submerge.protocol.summaries import MOST_TIMES, KernelSummary, Subspaces
from support.nodes import Table, report
from support.wire import kernel_schema, subspace_of

KIND, SCHEMA = Subspaces(2, oversample=1), Schema.anonymous(40)
MOST = MOST_TIMES * 3


def of_rank(rank: int, schema: Schema = SCHEMA, dim: int = 40):
    return subspace_of(dim, np.arange(rank, 0, -1.0), schema=schema)


@pytest.mark.parametrize(("rank", "fits"), [(0, True), (3, True), (MOST, True), (MOST + 1, False)])
def test_ranks_may_differ_a_little(rank, fits):
    """Four times what is kept; a merge of more would cost its parent out of proportion."""
    assert fits == KIND.fits(SCHEMA, of_rank(rank))


def test_a_kernel_group_counts_both():
    """The readings keep directions of their own, and fewer where there are few channels."""
    kernel = kernel_schema(40, 60)
    features, linear = of_rank(MOST, kernel, 60), of_rank(MOST, kernel, 40)

    assert KIND.fits(kernel, KernelSummary(features, linear))
    assert not KIND.fits(kernel, KernelSummary(of_rank(MOST + 1, kernel, 60), linear))
    assert not KIND.fits(kernel, KernelSummary(features, of_rank(MOST + 1, kernel, 40)))


def test_what_does_not_fit_is_invalid_and_changes_nothing():
    """The child hears why; the row that it had stays."""
    table = Table(KIND, SCHEMA)
    root = table.root("r")
    fields = {"pinned": root.node.incarnation, "fingerprint": SCHEMA.fingerprint}
    fields["counts"] = Counts(100)
    table.tell("r", report(**fields, summary=of_rank(MOST)))
    before = root.ledger.summary()
    answer, *_ = table.tell("r", report(**fields, seq=2, summary=of_rank(MOST + 1)))

    assert (Reason.INVALID, 1) == (answer.reason, answer.newest)
    assert before is root.ledger.summary()


def test_a_rank_that_was_lowered_keeps_its_rows():
    """What is in the store already is merged, whatever it is."""
    table = Table(KIND, SCHEMA)
    root = table.root("r")
    fields = {"pinned": root.node.incarnation, "fingerprint": SCHEMA.fingerprint}
    table.tell("r", report(**fields, summary=of_rank(MOST), counts=Counts(100)))
    table.dies("r")
    table.summaries = Subspaces(1, oversample=1)
    disk = dict(root.disk)
    again = table.root("r", start=False)
    again.disk = disk
    table.starts("r")

    assert (2, 100) == (again.ledger.summary().rank, again.ledger.counts().learnt)


def test_a_summary_of_another_schema_does_not_fit():
    """Nor one of another length, whatever its schema says."""
    other = replace(of_rank(3), schema=Schema.anonymous(41).fingerprint)

    assert not KIND.fits(SCHEMA, other)
    assert not KIND.fits(SCHEMA, of_rank(3, dim=39))
