"""What a node of an earlier version left behind does not keep a group from having factors."""

import numpy as np
import pytest

from submerge import Schema
from submerge.aggregator.rows.pool import Sealed
from submerge.protocol.messages import Counts
from submerge.protocol.summaries import Subspaces
from support.wire import a_twofold, subspace_of

OLD = subspace_of(6, [5.0, 4.0, 3.0], weight=100.0)


def sealed(summary):
    """A sealed row."""
    return Sealed(summary, None, Counts(100), 0.0)


def test_energies_that_were_never_reported_are_spread_evenly():
    """They sum to the energy, and hold what the directions hold of each channel."""
    known = sealed(OLD).with_energies.summary
    held = np.square(OLD.basis, dtype=float) @ OLD.sigma**2
    rest = known.channel_energies - held

    assert OLD.channel_energies is None
    assert OLD.energy == pytest.approx(known.channel_energies.sum())
    assert rest == pytest.approx(np.full(6, rest[0]), abs=1e-9 * OLD.energy)
    assert rest.min() >= -1e-9 * OLD.energy


def test_a_merge_with_a_sealed_row_of_an_earlier_version_has_factors():
    summaries = Subspaces(3)
    new = subspace_of(6, [6.0, 5.0, 2.0], weight=100.0, energies=True, seed=1)

    schema = Schema.anonymous(6)

    def merged(row):
        return summaries.merged(schema, [new, row.summary], own=True)

    assert summaries.factors(merged(sealed(OLD))) == ()
    assert len(summaries.factors(merged(sealed(OLD).with_energies))) == 1


@pytest.mark.parametrize("summary", [None, a_twofold()], ids=["nothing", "known"])
def test_what_is_known_stays_as_it_is(summary):
    row = sealed(summary)

    assert row.with_energies is row
