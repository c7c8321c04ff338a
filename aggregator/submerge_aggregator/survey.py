"""Survey: questions to a machine, and what an operator sees for an answer.

All are asked on the desk's thread, through `Server.ask`, and change nothing.
"""

from __future__ import annotations

from typing import get_args

from submerge.aggregator_node import AggregatorNode
from submerge.errors import UsageError
from submerge.ledger import Ledger
from submerge.messages import Counts, Incarnation, Model
from submerge.pool import Row, Sealed
from submerge.standing import census, staleness
from submerge.steps import Drop, Now
from submerge.suspicion import Cause
from submerge_aggregator.views import About, Age, Kind, NodeView, RowView, SealedView, Standing


class Missing(UsageError):
    """A group, a node or a model that is not here."""


def about(node: AggregatorNode) -> About:
    """Say which aggregator it is."""
    return About(
        node.settings.node, str(node.incarnation), node.top, node.settled, tuple(node.groups)
    )


def nodes(
    node: AggregatorNode, now: Now, group: str | None = None, name: str | None = None
) -> list[NodeView]:
    """List the nodes of one group, or of all; all nodes, or those of one name."""
    chosen = node.groups if group is None else (_group(node, group),)
    views = [view for each in sorted(chosen) for view in _views(node, each, now)]
    return views if name is None else [view for view in views if view.node == name]


def one(node: AggregatorNode, now: Now, group: str, name: str) -> NodeView:
    """Look at one node.

    Raises
    ------
    Missing
        If nothing was ever heard of it here.
    """
    ledger = node.ledger(_group(node, group))
    known = ledger is not None and ledger.knows(name)
    if not known and not any(name in names for names in node.set_apart(group)):
        raise Missing(
            f"group {group} has no node {name} here: a node further down is known where it reports"
        )
    shown = nodes(node, now, group, name)
    nothing = NodeView(group, name, None, (), (), banned=False, quarantined=False)
    return shown[0] if shown else nothing


def has(node: AggregatorNode, event: Drop) -> None:
    """See that there is what an operator wants to take out.

    Raises
    ------
    Missing
        If there is not.
    """
    group, name = event.group, event.node
    ledger = node.ledger(_group(node, group))
    if ledger is None:
        raise Missing(f"group {group} knows no schema yet, and holds nothing")
    if event.incarnation is not None and (name, event.incarnation) not in ledger.rows:
        live = [str(incarnation) for other, incarnation in sorted(ledger.rows) if other == name]
        raise Missing(
            f"{name} of group {group} has no row of incarnation {event.incarnation} here, but of"
            f" {', '.join(live) or 'none'}"
        )
    of_rows = ((other, row.report.fingerprint) for (other, _), row in ledger.rows.items())
    places = {place for place in (*of_rows, *ledger.sealed) if place[1] != ledger.fingerprint}
    if event.old and name not in (other for other, _ in places):
        raise Missing(f"{name} of group {group} has nothing of an old schema here")


def newest_model(node: AggregatorNode, group: str) -> Model:
    """Return a group's model.

    Raises
    ------
    Missing
        If there is none yet.
    """
    model = node.model(_group(node, group))
    if model is None:
        raise Missing(f"group {group} has no model yet: one comes once nodes have reported")
    return model


def standings(node: AggregatorNode, now: Now) -> list[Standing]:
    """Put each group in numbers."""
    return [_standing(node, group, now) for group in node.groups]


# -- inside ----------------------------------------------------------------------------


def _group(node: AggregatorNode, group: str) -> str:
    if group not in node.groups:
        raise Missing(f"no group {group} here, but {', '.join(sorted(node.groups))}")
    return group


def _views(node: AggregatorNode, group: str, now: Now) -> list[NodeView]:
    """All nodes of which there is something to show."""
    ledger, (banned, apart) = node.ledger(group), node.set_apart(group)
    rows: dict[str, list[RowView]] = {}
    sealed: dict[str, list[SealedView]] = {}
    kinds: dict[str, Kind] = {}
    far = {} if ledger is None else ledger.far()
    if ledger is not None:
        for (name, incarnation), row in ledger.rows.items():
            rows.setdefault(name, []).append(_row(ledger, name, incarnation, row, now))
            kinds[name] = _kind(row)
        for (name, fingerprint), each in ledger.sealed.items():
            sealed.setdefault(name, []).append(_sealed(ledger, fingerprint, each))
    return [
        NodeView(
            group,
            name,
            kinds.get(name),
            tuple(sorted(rows.get(name, ()), key=lambda row: row.silent_s)),
            tuple(sealed.get(name, ())),
            name in banned,
            name in apart,
            apart[name].cause if name in apart else None,
            # Kept by a version that did not say since when.
            (apart[name].since or None) if name in apart else None,
            far[name].words if name in far else "",
        )
        for name in sorted(rows.keys() | sealed.keys() | banned | apart.keys())
    ]


def _row(ledger: Ledger, name: str, incarnation: Incarnation, row: Row, now: Now) -> RowView:
    report = row.report
    return RowView(
        incarnation=str(incarnation),
        created_s=incarnation.created_ms / 1000,
        seq=report.stamp.seq,
        learnt=report.counts.learnt,
        withheld=report.counts.withheld,
        lost=report.counts.lost,
        lifetime=report.lifetime,
        silent_s=max(0.0, now.steady - ledger.heard[name, incarnation]),
        as_of_s=row.as_of,
        software=report.software,
        model_version=report.version,
        final=report.final,
        schema=_age(ledger, report.fingerprint),
        certified_until_s=report.certified_until,
    )


def _sealed(ledger: Ledger, fingerprint: str, sealed: Sealed) -> SealedView:
    counts = sealed.counts
    return SealedView(
        counts.learnt, counts.withheld, counts.lost, sealed.as_of, _age(ledger, fingerprint)
    )


def _age(ledger: Ledger, fingerprint: str) -> Age:
    return "current" if fingerprint == ledger.fingerprint else "old"


def _kind(row: Row) -> Kind:
    return "client" if row.from_client else "aggregator"


def _standing(node: AggregatorNode, group: str, now: Now) -> Standing:
    ledger, model = node.ledger(group), node.model(group)
    rows = {"client": 0, "aggregator": 0}
    clients, counts, silences, ends = 0, Counts(), (0.0, 0.0, 0.0), dict[str, float]()
    if ledger is not None:
        for (name, _), row in ledger.rows.items():
            rows[_kind(row)] += 1
            # What an earlier life of it had to show was renewed.
            ends[name] = max(ends.get(name, 0.0), row.report.certified_until)
        known = census(ledger, now)
        clients, counts, silences = known.nodes, ledger.counts(), staleness(known)
    banned, apart = node.set_apart(group)
    causes = [each.cause for each in apart.values()]
    return Standing(
        group,
        rows,
        clients,
        counts,
        None if model is None else model.version,
        None if model is None else max(0.0, now.wall - model.created),
        silences,
        len(banned),
        {cause: causes.count(cause) for cause in get_args(Cause)},
        min((end for end in ends.values() if end), default=0.0),
        0 if ledger is None else len(ledger.far()),
    )
