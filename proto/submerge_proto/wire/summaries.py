"""Summaries in messages: one subspace, or the two of a kernel group.

Reports, models and sealed rows have the same two fields: `subspace`, and in a kernel group
`linear`. Then `subspace` is of the features, and `linear` of the scaled readings. Without `linear`
the subspace is of the readings, as before there were kernel groups.
"""

from __future__ import annotations

from submerge import PeerError, Schema
from submerge.features.checks import MOST_FEATURES
from submerge.protocol.kernel_summary import summary_of
from submerge.protocol.summaries import Summary
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import kept_pb2, summary_pb2
from submerge_proto.wire import columns, parts, sizes

WEIGHTS_APART = 1e-6
"""Largest relative difference between the weights of the two: they hold the same readings."""

Holder = wire.ReportRequest | wire.Model | kept_pb2.Sealed


def put(
    message: Holder,
    summary: Summary | None,
    *,
    coarse: bool = False,
    exact: bool = False,
) -> None:
    """Put a summary into a message, as `columns.packed`.

    A summary that has faded to nothing is left out, except on one's own disk (`exact`).
    """
    if summary is None:
        return
    if not exact and min(part.weight for part in summary.parts) < sizes.LEAST:
        return
    for field, part in zip((message.subspace, message.linear), summary.parts, strict=False):
        field.CopyFrom(columns.packed(part, coarse=coarse, exact=exact))


def of(message: Holder, fingerprint: str, *, kept: bool = False) -> Summary | None:
    """Return the summary that a message holds, as `columns.unpacked`; None if it has none.

    Raises
    ------
    PeerError
        If no honest node could have written it.
    """
    kernel_summary = message.HasField("linear")
    if not message.HasField("subspace"):
        if kernel_summary:
            raise PeerError(
                "expected a subspace of features beside that of readings, got none", kind="shape"
            )
        return None
    if kernel_summary and message.subspace.dim > MOST_FEATURES:
        raise PeerError(
            f"expected at most {MOST_FEATURES} features, got {message.subspace.dim}", kind="shape"
        )
    first = columns.unpacked(message.subspace, fingerprint, kept=kept)
    if not kernel_summary:
        return first
    linear = message.linear if kept else _weighing(first.weight, message.linear)
    parts.real("the weight of readings", message.linear.weight)
    # Weights near zero have large rounding errors.
    if not abs(message.linear.weight - first.weight) <= WEIGHTS_APART * first.weight + 1e-300:
        raise PeerError(
            f"features and readings must weigh the same, got {first.weight!r}"
            f" and {message.linear.weight!r}",
            kind="range",
        )
    return summary_of(first, columns.unpacked(linear, fingerprint, kept=kept))


def _weighing(weight: float, subspace: summary_pb2.Subspace) -> summary_pb2.Subspace:
    """Return a subspace of this weight.

    From here on the two are added up and faded alike, and stay equal: a rounding error of one
    child is no reason to refuse its parent.
    """
    if subspace.weight == weight:
        return subspace
    other = summary_pb2.Subspace()
    other.CopyFrom(subspace)
    other.weight = weight
    return other


def check_fits(summary: Summary, schema: Schema) -> None:
    """Refuse a summary that a schema cannot have."""
    expected = [("features", schema.dim), ("channels", schema.width)]
    if schema.linear:
        expected = [("dimensions", schema.dim)]
        if len(summary.parts) > 1:
            raise PeerError("expected one subspace, of a linear group, got two", kind="schema")
    elif len(summary.parts) == 1:
        raise PeerError("expected two subspaces, of a kernel group, got one", kind="schema")
    if not schema.features.settled:
        raise PeerError(
            "expected nothing learnt before gamma is settled, got a summary", kind="schema"
        )
    for (what, dim), part in zip(expected, summary.parts, strict=True):
        if part.dim != dim:
            raise PeerError(
                f"expected a summary of {dim} {what}, got one of {part.dim}", kind="schema"
            )
