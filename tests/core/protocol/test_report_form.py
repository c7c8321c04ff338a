"""Whole scatters go to parents that take them, directions to all others, and none is lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from submerge import Schema, Subspace
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.rows.pool import Sealed
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.machine import Flush, Linked, Reading
from submerge.protocol.messages import Join, Joined, Model, Reason, Report
from submerge.protocol.summaries import Subspaces
from submerge_proto.kept import records
from support import wire
from support.earlier import MixedTable
from support.nodes import GROUP, Host, Table, answer, joined

SCHEMA = Schema.anonymous(5)
KIND = Subspaces(2, oversample=1)
"""3 directions are kept of 5 dimensions: the group is narrow."""

TEXT = {"schema": SCHEMA.canonical}


def readings(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((n, 5)) * np.arange(1, 6) + 3


def alone(*, whole: bool | None, **settings: Any) -> tuple[Table, Host]:
    """A client whose parent the test plays; it has read 20 rows, and joined unless None."""
    table = Table(KIND, SCHEMA)
    host = table.client("c", under="a", **settings)
    if whole is not None:
        joins(table, whole=whole)
    table.step("c", Reading(readings(20)))
    return table, host


def joins(table: Table, *, whole: bool, seq: int = 0) -> None:
    asked = table.messages("c", Join)[-1]
    table.tell("c", joined(asked, seq=seq, whole_scatter=whole, **TEXT))


def opens(table: Table) -> None:
    """Have the way to the parent open again: the client joins anew."""
    table.step("c", Linked())
    table.passes(20)


def reported(table: Table) -> Report:
    """Have the client report at once; return its newest report."""
    table.step("c", Flush())
    table.run()
    return table.reports("c")[-1]


# -- what goes up --------------------------------------------------------------------


def test_a_parent_that_takes_it_gets_the_whole_scatter():
    """Rounded once to float32, so that a report that is repeated is the same bytes."""
    table, _ = alone(whole=True)
    summary = reported(table).summary

    assert isinstance(summary, WholeScatter)
    assert np.float32 == summary.held.dtype
    assert summary.spectral_bound > 0


def test_another_parent_gets_the_directions_that_the_group_keeps():
    """As before: the rest of the scatter is in the bound, and energies of channels are exact."""
    table, _ = alone(whole=False)
    summary = reported(table).summary
    X = readings(20) - readings(20).mean(axis=0)

    assert isinstance(summary, Subspace)
    assert 3 == summary.rank
    np.testing.assert_allclose(np.linalg.svd(X, compute_uv=False)[:3], summary.sigma)
    np.testing.assert_allclose(np.square(X).sum(axis=0), summary.channel_energies)


def test_a_report_that_waits_is_made_again_for_a_parent_that_went_back_a_version():
    """Under another number: under the first the parent may hold the whole scatter already."""
    table, _ = alone(whole=True)
    first = reported(table)
    opens(table)
    joins(table, whole=False, seq=first.stamp.seq)
    table.passes(1)
    second = table.reports("c")[-1]

    assert isinstance(first.summary, WholeScatter)
    assert isinstance(second.summary, Subspace)
    assert first.stamp.seq < second.stamp.seq
    assert first.counts == second.counts


def test_a_report_that_waits_is_repeated_where_nothing_has_changed():
    """A join is answered as before: one number, one content."""
    for whole in (True, False):
        table, _ = alone(whole=whole)
        first = reported(table)
        table.step("c", Linked())
        table.run()
        joins(table, whole=whole)
        table.passes(1)
        second = table.reports("c")[-1]

        assert first.stamp == second.stamp
        assert first.summary is second.summary


def test_a_parent_that_was_updated_gets_whole_scatters_from_the_next_report_on():
    """It says so when the child joins again, as it does with every start of its parent."""
    table, _ = alone(whole=False)
    table.tell("c", answer(reported(table)))
    opens(table)
    joins(table, whole=True, seq=1)
    table.step("c", Reading(readings(20, seed=1)))

    assert isinstance(reported(table).summary, WholeScatter)


# -- finals -------------------------------------------------------------------------


def ended(*, whole: bool) -> tuple[Table, Host]:
    """A client that was started again; the checkpoint of its first process waits as a final."""
    table, host = alone(whole=whole)
    reported(table)
    table.said.clear()
    table.restarts("c")
    return table, host


@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("whole", [True, False])
def test_a_final_goes_in_the_form_that_its_parent_takes_now(before, whole):
    """The checkpoint has all of it, whatever the parent took when it was written."""
    table, _ = ended(whole=before)
    table.passes(1)
    assert [] == table.reports("c")  # it waits for the answer to the join
    joins(table, whole=whole)
    table.passes(1)
    (final,) = table.reports("c")

    assert final.final
    assert isinstance(final.summary, WholeScatter if whole else Subspace)


def test_a_final_that_is_repeated_is_the_same():
    """One number has one content, however often it is sent."""
    for whole in (True, False):
        table, _ = ended(whole=True)
        joins(table, whole=whole)
        table.passes(1000)
        finals = [report for report in table.reports("c") if report.final]

        assert len(finals) > 2
        assert 1 == len({KIND.packed(report.summary) for report in finals})


def test_a_final_waits_while_a_join_has_no_answer():
    """The parent behind a link that was open before may be of another version by now."""
    table, _ = ended(whole=True)
    joins(table, whole=True)
    table.said.clear()
    opens(table)

    assert [] == table.reports("c")
    joins(table, whole=False)
    table.passes(1)
    assert isinstance(table.reports("c")[0].summary, Subspace)


# -- three levels, of two versions ------------------------------------------------------


def fleet(*earlier: str, half_life: float | None = None) -> MixedTable:
    """A root, two sites and three clients below each; those named are of the version before."""
    schema = Schema(5, half_life=half_life)
    table = MixedTable({*earlier}, KIND, schema, seed=1)
    table.root("r", plans={GROUP: GroupPlan(KIND, schema)})
    for site in ("a", "b"):
        table.aggregator(site, under="r", plans={GROUP: GroupPlan(KIND)})
        for i in range(3):
            table.client(f"{site}{i}", under=site, schema=schema)
    table.passes(30)
    return table


def test_energies_of_channels_are_exact_through_three_levels():
    """Those of all rows together, although the model has 3 directions of 5."""
    table = fleet()
    X = np.concatenate([readings(50, seed=i) for i in range(read(table) // 50)])
    model = table.hosts["r"].model.summary

    assert 3 == model.rank
    np.testing.assert_allclose(X.var(axis=0) * len(X), model.channel_energies, rtol=1e-12)
    np.testing.assert_allclose(model.energy, model.channel_energies.sum(), rtol=1e-12)


def read(table: MixedTable, *, seed: int = 0, seconds: float = 2000) -> int:
    """Have all clients read 50 rows and report; return how many rows that was."""
    clients = [label for label in table.hosts if len(label) == 2]
    for i, label in enumerate(clients):
        table.step(label, Reading(readings(50, seed=100 * seed + i)))
    table.passes(seconds)
    return 50 * len(clients)


EARLIER = [
    (),
    ("r",),
    ("a",),
    ("a0",),
    ("a", "a0", "a1"),
    ("r", "b", "b2"),
    ("r", "a", "b", "a0", "a1", "a2", "b0", "b1", "b2"),
]


@pytest.mark.parametrize("earlier", EARLIER, ids="-".join)
def test_versions_mix(earlier):
    """Every reading is counted once, and no message is unreadable to anybody."""
    table = fleet(*earlier)
    rows = read(table)
    model = table.hosts["r"].model

    assert [] == table.unreadable
    assert rows == model.counts.learnt
    np.testing.assert_allclose(rows, model.summary.weight)
    assert isinstance(model.summary, Subspace)
    assert model.summary.rank <= 3
    # Of one client alone: its site has had a model with factors, and goes on with them.
    known = earlier in ((), ("a0",))
    assert known == (model.summary.channel_energies is not None) == bool(model.factors)
    for host in table.hosts.values():
        assert [] == host.why("message refused")


def test_the_log_names_once_the_node_whose_rows_have_no_energies_of_channels():
    """At its parent; the root hears energies all the same, once it has had factors."""
    table = fleet("a0")
    read(table)
    read(table, seed=1)
    notes = [each for each in table.hosts["a"].notes if each.what == "no energies of channels"]

    assert [note.facts["node"] for note in notes] == ["a0"]
    assert notes[0].facts["todo"].startswith("update it and the nodes below it")


def variances(model: Model) -> np.ndarray:
    """Return the variance of each channel by a model's factors."""
    (factors,) = model.factors
    return factors.noise + np.square(factors.loadings_of(model.summary)).sum(axis=1)


@pytest.mark.parametrize("site", ["r", "a"])
def test_one_report_without_energies_takes_factors_from_no_one(site):
    """Below the root and below a site: its rows stay out of the noise, and all else goes on."""
    table, client = fleet(), f"{site}0"
    if site == "r":
        table.client(client, under="r", schema=Schema(5))
        table.passes(30)
    rows = read(table)
    before = table.hosts["r"].model
    table.earlier.add(client)
    table.restarts(client)
    rows += read(table, seed=1)
    model = table.hosts["r"].model

    assert before.factors
    assert before.version < model.version
    assert rows == model.counts.learnt
    np.testing.assert_allclose(variances(before), variances(model), rtol=0.3)
    notes = [each for each in table.hosts[site].notes if each.what == "no energies of channels"]
    assert [client] == [note.facts["node"] for note in notes]
    assert "warning" == notes[0].level
    # Nor does a root that has just begun forget it: rows say that they are scored by distances.
    table.restarts("r")
    read(table, seed=2)
    assert table.hosts["r"].model.factors


def test_one_node_that_never_has_energies_keeps_no_one_from_factors():
    """A group had none from its first day on, as long as one kit reported without."""
    table = fleet("r0")
    table.client("r0", under="r", schema=Schema(5))
    table.passes(30)
    table.step("r0", Reading(readings(50, seed=9)))
    table.passes(2000)
    assert not table.hosts["r"].model.factors
    rows = 50 + read(table)
    model = table.hosts["r"].model

    assert rows == model.counts.learnt
    np.testing.assert_allclose(readings(3000).var(axis=0), variances(model), rtol=0.3)


@pytest.mark.slow
@pytest.mark.parametrize("earlier", EARLIER[1:], ids="-".join)
def test_nodes_are_updated_one_after_another_and_back(earlier):
    """Each node starts again as the later version, then as the earlier one: nothing is lost."""
    table = fleet(*earlier)
    rows = read(table)
    for back in (False, True):
        for label in earlier:
            (table.earlier.add if back else table.earlier.discard)(label)
            table.restarts(label)
            for host in table.hosts.values():
                if host.parent == label:
                    table.back(host.label)
            table.passes(100)
        rows += read(table, seed=1 + back)

    assert [] == table.unreadable
    assert rows == table.hosts["r"].model.counts.learnt
    assert 0 == table.hosts["r"].model.counts.lost


def test_a_parent_that_went_back_without_a_word_hears_directions_after_a_while():
    """On a broker a report may reach it before the child has joined again: it is not taken."""
    table = fleet()
    read(table)
    table.earlier.add("a")
    children = [host for host in table.hosts.values() if host.parent == "a"]
    for child in children:
        child.cut = True  # nobody hears of it: no hello, and no link that opens
    table.restarts("a")
    for child in children:
        child.cut = False
    rows = 2 * read(table, seed=1, seconds=8000)

    assert table.unreadable
    assert all("0 columns of 5 numbers" in why for why in table.unreadable)
    assert rows == table.hosts["r"].model.counts.learnt


def test_records_lose_nothing_of_a_scatter():
    """Checkpoints, rows and sealed rows: each is read back to the last bit."""
    table = fleet()
    read(table)
    for _ in range(2):
        table.step("a0", Flush())
        table.restarts("a0")
        read(table)
    kinds = ("checkpoint", "row", "sealed")
    kept = [(key, record) for key, record in table.seen if key[0] in kinds]
    for key, record in kept:
        again = records.unpack(key, records.pack(key, record))
        assert wire.reported(summary_of(record)) == wire.reported(summary_of(again))

    whole = {key[0] for key, record in kept if isinstance(summary_of(record), WholeScatter)}
    assert {*kinds} == whole


def summary_of(record: Any) -> Any:
    """Return the summary in a record."""
    return record.summary if isinstance(record, Sealed) else record.report.summary


def test_the_join_says_it():
    """A parent of this version takes whole scatters; one that accepts nothing says nothing."""
    answers = fleet().messages("r", Joined)

    assert [True, True] == [each.whole_scatter for each in answers if each.reason is Reason.ACK]
