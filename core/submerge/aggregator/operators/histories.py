"""check(): why a root does not take a history, in one line that names the cure."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from dataclasses import replace
from itertools import accumulate

import numpy as np

from submerge.aggregator.group import Group
from submerge.aggregator.rows.histories import MOST_HISTORIES, Histories
from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.rows.pool import with_energies
from submerge.aggregator.rows.refusals import ROUNDING
from submerge.errors import UsageError
from submerge.judge.prepare import LARGEST_SCALED
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.history import Chunk, History, fleet_chunk
from submerge.protocol.machine import ForgetHistory, Note, Now, PushHistory
from submerge.protocol.messages import Incarnation
from submerge.protocol.summaries import Summaries, Summary
from submerge.schema import Schema, differences

LARGEST_UNSCALED = 1e30
"""Largest reading of a history that is not scaled. Of more, a model's numbers leave their range."""

MOST_NAMED = 3  # most chunks or machines that a line names


def check(group: Group, order: PushHistory, root: Incarnation | None, now: Now) -> History:
    """Return a history as a group takes it; UsageError if it does not. `root`: None below one."""
    history, ledger = order.history, group.ledger
    if root is None:
        raise UsageError("histories are kept by the root alone: push this one there")
    if ledger is None:
        raise UsageError(f"group {group.name!r} has no schema yet: try again once it has")
    _check_noise(group)
    _check_origin(group, history, root)
    schema = _schema_of(group, ledger, history)
    summary = fitted(group.plan.summaries, schema, history.summary)
    if summary is None:
        raise UsageError(
            "expected a summary that this group can merge, got one with more directions or"
            " readings than it may have: fit it again with this version"
        )
    if not history.most_rows >= 1:
        raise UsageError(f"expected a weight of 1 row or more, got {history.most_rows:g}")
    _check_size(schema, summary)
    _check_chunks(group, history)
    if not order.anyway:
        check_times(group.histories, history, group.histories.covered_by(history))
        _check_nodes(ledger, history, now)
        _check_earlier_root(group, ledger, history, root)
    return replace(history, summary=summary)


def fitted(summaries: Summaries, schema: Schema, summary: Summary) -> Summary | None:
    """Return a summary as a group merges it; None if it cannot."""
    if isinstance(summary, WholeScatter) and not summaries.is_narrow(schema):
        summary = summaries.directions(summary)
    return with_energies(summary) if summaries.fits(schema, summary) else None


def opens(group: Group, ledger: Ledger, schema: Schema) -> bool:
    """Return whether a history settles what a group's schema still leaves open."""
    ours, plan = ledger.schema, group.plan
    brings_scaling = ours.scaling is None and schema.scaling is not None
    brings_gamma = not ours.features.settled and schema.features.settled
    if not schema.is_like(ours) or (brings_scaling and not plan.learns_scaling):
        return False
    return plan.settles and (brings_scaling or brings_gamma)


def _check_noise(group: Group) -> None:
    if group.plan.noise is not None:
        raise UsageError(
            f"group {group.name!r} publishes sums of rows with noise ([privacy] epsilon), and a"
            " history holds no rows: replay its file into the fleet (submerge replay --into)"
        )


def _check_origin(group: Group, history: History, root: Incarnation) -> None:
    ours = f"{group.name} {root}"
    if history.origin == ours:
        raise UsageError(
            "this model was saved from this very fleet, whose readings would count twice: push it"
            " to another"
        )
    if fleet_chunk(ours).key in history.keys:
        raise UsageError(
            "the fleet that this model is of held a model of this very fleet, whose readings would"
            " count twice: have it forget that one first (submerge model forget), and save again"
        )


def _schema_of(group: Group, ledger: Ledger, history: History) -> Schema:
    theirs = Schema.parse(history.model.schema)
    if group.plan.learns_scaling and ledger.schema.scaling is None and theirs.scaling is None:
        raise UsageError(
            f"group {group.name!r} learns a scaling, and the history has none: it would leave the"
            " model with the first one. Fit its rows again (submerge fit): then it has a scaling"
        )
    if theirs.fingerprint == ledger.fingerprint or opens(group, ledger, theirs):
        return theirs
    lines = differences(ledger.schema, theirs)
    raise UsageError(
        f"the history has another schema than group {group.name!r}: {'; '.join(lines)}. Fit it"
        " with the group's (submerge model save fleet.model, then submerge fit --like fleet.model)"
    )


def _check_size(schema: Schema, summary: Summary) -> None:
    """Refuse sums that no rows have: no node could read the model; some would be quarantined."""
    largest = LARGEST_SCALED if schema.scaling is not None else LARGEST_UNSCALED
    for part in summary.pieces:
        most = 4 * part.dim * part.weight * largest**2
        if np.abs(part.mean).max() > largest or part.energy > most:
            raise UsageError(
                f"expected readings of at most {largest:g}, got sums of larger ones: this is no"
                " model that submerge has written"
            )


def _check_chunks(group: Group, history: History) -> None:
    """Refuse chunks that are held already, except where one history covers the other."""
    if history.summary.weight > history.model.counts.learnt * (1 + ROUNDING):
        raise UsageError("expected a summary of the rows that were learnt, got one of more")
    table = group.histories
    # Those of an earlier schema count for nothing, and hold nothing.
    current = {each.name for each in table.of(history.model.fingerprint)}
    found, covered = table.holders(history.passed_on), table.covered_by(history)
    held = {key: name for key, name in found.items() if name in current}
    later = table.later_than(history)
    if later:
        raise UsageError(f"nothing new: history {later[0]} is this model of that fleet, or later")
    where = ", ".join(sorted(set(held.values())))
    # A fleet has learnt more than the histories that it holds.
    of_files = not history.origin
    if of_files and not history.keys:
        raise UsageError("expected keys of its rows, by which they count once, got none: fit it")
    if of_files and (history.name in current or len(held) == len(history.keys)):
        raise UsageError(
            f"nothing new: all of its rows are held already, by history {where or history.name}"
        )
    if not set(held.values()) <= set(covered):
        known = history.passed_on
        files = _some(sorted({each.file or each.machine for each in known if each.key in held}))
        cure = "forget that one first" if history.origin else "fit the others alone, or all of them"
        raise UsageError(
            f"{len(held)} of its {len(known)} chunks of rows are held already, by history"
            f" {where} ({files}): {cure}"
        )
    if len(table.by_name) - len(covered) >= MOST_HISTORIES:
        raise UsageError(
            f"group {group.name!r} holds {MOST_HISTORIES} histories, and no more: fit several files"
            " together, or forget one (submerge model forget)"
        )


def _check_nodes(ledger: Ledger, history: History, now: Now) -> None:
    """Refuse rows of a node that reports, from a time when it may have reported them itself."""
    twice = sorted(
        {
            chunk.machine
            for chunk in history.chunks
            if chunk.machine in ledger.presence
            # Without times it is not known.
            and not chunk.last <= ledger.began(chunk.machine, now)
        }
    )
    if twice:
        raise UsageError(
            f"node {_some(twice)} has reported here since before the last of these rows: they may"
            " count twice. Fit files of earlier rows alone, or say --anyway"
        )


def _check_earlier_root(group: Group, ledger: Ledger, history: History, root: Incarnation) -> None:
    """Refuse what this fleet learnt under a lost root: its nodes come with all rows (`binds`)."""
    # Such nodes are older than the model, and this root is younger.
    made = history.model.created * 1000
    if history.origin.rpartition(" ")[0] != group.name or root.created_ms <= made:
        return
    live = {node for node, incarnation in ledger.rows if incarnation.created_ms < made}
    closed = {
        node
        for node, _ in ledger.sealed
        if any(each.created_ms < made for each in ledger.member(node).closed)
    }
    if live | closed:
        raise UsageError(
            f"node {_some(sorted(live | closed))} is older than this model, and this root is"
            " younger: if it is of this fleet, from before the root's store was lost, its readings"
            " would count twice. Say --anyway if it is of another fleet"
        )


def _some(names: list[str]) -> str:
    shown = ", ".join(names[:MOST_NAMED])
    return f"{shown} and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else shown


# The key of a chunk is that of its rows, so a file that has grown has another one.


def check_times(table: Histories, history: History, covered: Collection[str]) -> None:
    """Refuse rows of a machine from a time of which rows are held, but by those it `covered`."""
    known, spans = history.keys, _Spans(history.chunks)
    for name, held in table.by_name.items():
        if name in covered or held.model.fingerprint != history.model.fingerprint:
            continue
        for chunk in held.chunks:
            if chunk.key not in known and spans.meet(chunk):
                raise UsageError(
                    f"history {name} holds rows of machine {chunk.machine} from the same time"
                    f" ({chunk.file or 'a fleet'}), which would count twice. If a file has grown,"
                    " forget that one first; if the rows are of another machine, fit with"
                    " --node-by, or say --anyway"
                )


class _Spans:
    """The spans of time that chunks have of each machine."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        spans: dict[str, list[tuple[float, float]]] = {}
        for chunk in chunks:
            if chunk.first < chunk.last:  # NaN is no time
                spans.setdefault(chunk.machine, []).append((chunk.first, chunk.last))
        ordered = {machine: sorted(each) for machine, each in spans.items()}
        self._first = {machine: [span[0] for span in each] for machine, each in ordered.items()}
        self._latest = {
            machine: list(accumulate((span[1] for span in each), max))
            for machine, each in ordered.items()
        }

    def meet(self, chunk: Chunk) -> bool:
        """Return whether one of them has a time in common with a chunk of its machine."""
        before = bisect_left(self._first.get(chunk.machine, ()), chunk.last)
        return before > 0 and self._latest[chunk.machine][before - 1] > chunk.first


def apply(
    group: Group, order: PushHistory | ForgetHistory, root: Incarnation | None, now: Now
) -> list[Note]:
    """Take a history, or remove one; what is not done becomes a note. `root`: None below one."""
    facts = {"group": group.name}
    group.open_floor(now)
    if isinstance(order, ForgetHistory):
        if not group.histories.remove(order.name):
            return [Note("unknown history", {**facts, "history": order.name})]
        group.stir(now=True)
        return [Note("history forgotten", {**facts, "history": order.name})]
    try:
        history = check(group, order, root, now)
    except UsageError as error:
        return [Note("history refused", {**facts, "why": str(error)})]
    schema = Schema.parse(history.model.schema)
    if group.ledger is not None and opens(group, group.ledger, schema):
        group.learn_schema(schema.canonical, 0.0)
    replaced = group.histories.put(history)
    group.stir(now=True)
    facts |= {"history": history.name, "rows": str(history.model.counts.learnt)}
    return [Note("history taken", facts | ({"replaces": ", ".join(replaced)} if replaced else {}))]
