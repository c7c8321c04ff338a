"""Summaries in messages: one subspace, the two of a kernel group, or a whole scatter.

In a kernel group `subspace` is of the features, and `linear` of the scaled readings; else the
subspace is of the readings. In reports of a narrow group it is a whole scatter (`triangles`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from submerge import PeerError, Schema
from submerge.features.checks import MOST_FEATURES
from submerge.pca.row_sums import RowSums
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.summaries import Summary, summary_of
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import summary_pb2
from submerge_proto.wire import columns, sizes, triangles
from submerge_proto.wire.fields import real

WEIGHTS_APART = 1e-6
"""Largest relative difference between the weights of the two: they hold the same readings."""

if TYPE_CHECKING:
    from submerge_proto.v1 import kept_pb2, learnt_pb2

    Holder = wire.ReportRequest | wire.Model | kept_pb2.Sealed | learnt_pb2.Learnt


def put(
    message: Holder,
    summary: Summary | None,
    *,
    coarse: bool = False,
    exact: bool = False,
    kept: bool = False,
) -> None:
    """Put a summary into a message, as `columns.packed` or `triangles.packed`, unless it has faded.

    exact : On one's own disk. In the record of a report (`kept`) only a whole scatter is exact.
    """
    if summary is None:
        return
    if isinstance(summary, RowSums):
        message.subspace.CopyFrom(triangles.sums_packed(summary))
        return
    if isinstance(summary, WholeScatter):
        if exact or summary.weight >= sizes.LEAST:
            message.subspace.CopyFrom(triangles.packed(summary, exact=exact or kept))
        return
    if not exact and min(part.weight for part in summary.parts) < sizes.LEAST:
        return
    for field, part in zip((message.subspace, message.linear), summary.parts, strict=False):
        field.CopyFrom(columns.packed(part, coarse=coarse, exact=exact))


def of(message: Holder, fingerprint: str, *, kept: bool = False) -> Summary | None:
    """Return the summary that a message holds, as `columns.unpacked`; None if it has none."""
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
    if message.subspace.sums:
        if kernel_summary or isinstance(message, wire.Model):
            raise PeerError(
                "expected directions, in a model or a kernel group, got sums of rows", kind="shape"
            )
        return triangles.sums_unpacked(message.subspace, fingerprint, kept=kept)
    if message.subspace.whole:
        if kernel_summary or isinstance(message, wire.Model):
            raise PeerError(
                "expected directions, in a model or a kernel group, got a whole scatter",
                kind="shape",
            )
        return triangles.unpacked(message.subspace, fingerprint, kept=kept)
    first = columns.unpacked(message.subspace, fingerprint, kept=kept)
    if not kernel_summary:
        return first
    if message.linear.whole:
        raise PeerError("expected directions of readings, got a whole scatter", kind="shape")
    linear = message.linear if kept else _weighing(first.weight, message.linear)
    real("the weight of readings", message.linear.weight)
    # Weights near zero have large rounding errors.
    if not abs(message.linear.weight - first.weight) <= WEIGHTS_APART * first.weight + 1e-300:
        raise PeerError(
            f"features and readings must weigh the same, got {first.weight!r}"
            f" and {message.linear.weight!r}",
            kind="range",
        )
    return summary_of(first, columns.unpacked(linear, fingerprint, kept=kept))


def _weighing(weight: float, subspace: summary_pb2.Subspace) -> summary_pb2.Subspace:
    # From here on the two are added up and faded alike, and stay equal: a rounding error of one
    # child is no reason to refuse its parent.
    if subspace.weight == weight:
        return subspace
    other = summary_pb2.Subspace()
    other.CopyFrom(subspace)
    other.weight = weight
    return other


def fingerprint_of(summary: Summary) -> str:
    if isinstance(summary, WholeScatter | RowSums):
        return summary.schema
    return summary.parts[0].schema


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
