"""What merges, in float64, as a file holds it: written as on one's own disk, read as a message is.

A record of one's own is believed in its numbers; those of a file are compared with each other.
"""

from __future__ import annotations

import numpy as np

from submerge import PeerError, Schema
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.summaries import Piece, Subspaces, Summary, summary_of
from submerge_proto.v1 import learnt_pb2 as pb
from submerge_proto.v1 import summary_pb2
from submerge_proto.wire import sizes, summaries, triangles
from submerge_proto.wire.channel_energies import ROUNDING, TINY, held_by

BELOW = 1e-9
"""How far an eigenvalue of a scatter may lie below 0, over the trace: rounding is far smaller."""


def put(message: pb.Learnt, summary: Summary | None) -> None:
    """Put a summary into a message; one that has faded to nothing is left out."""
    if summary is None or summary.weight < sizes.LEAST:
        return
    summaries.put(message, summary_of(*map(_within, summary.pieces)), exact=True)


def of(message: pb.Learnt, schema: Schema) -> Summary | None:
    """Return the summary that a message holds; None if it has none.

    Raises PeerError if it does not fit the schema, or no rows have such a summary.
    """
    found = summaries.of(message, schema.fingerprint, kept=True)
    if found is None:
        return None
    # The rank does not matter: this checks the dimensions against the schema's.
    if not Subspaces(schema.dim).fits(schema, found):
        raise PeerError("what merges is of other dimensions than its schema's", kind="shape")
    for each, piece in zip((message.subspace, message.linear), found.pieces, strict=False):
        _check(each, piece)
    return found


def _within(piece: Piece) -> Piece:
    """Return a piece within the bounds of sums; itself if it is."""
    if isinstance(piece, WholeScatter):
        return triangles.saturated_whole(piece)
    return sizes.saturated(piece)


def _check(message: summary_pb2.Subspace, piece: Piece) -> None:
    """Compare the numbers of a piece with each other, as those of a report are."""
    sizes.check_sizes(message, piece.mean)
    if isinstance(piece, WholeScatter):
        if piece.held.ndim == 2:
            _check_scatter(piece)
        held = triangles.channels_held(piece)
    else:
        held = held_by(piece.basis.T, piece.sigma)
    if piece.channel_energies is not None:
        bound = min(piece.spectral_bound, piece.energy)
        sizes.check_channels(piece.channel_energies, held, piece.energy, bound)


def _check_scatter(whole: WholeScatter) -> None:
    """Refuse a symmetric matrix that is no scatter: it has an eigenvalue below 0, or no energy."""
    trace = float(np.trace(whole.held))
    if not trace * (1 - ROUNDING) <= whole.energy + TINY:
        raise PeerError("energy must not be less than the scatter holds", kind="energy")
    with np.errstate(all="ignore"):
        unit = whole.held / trace if trace > 0 else whole.held
        small = np.abs(unit).max() <= 1 + BELOW
    try:
        if not small or (not trace > 0 and whole.held.any()):
            raise np.linalg.LinAlgError
        np.linalg.cholesky(unit + BELOW * np.eye(whole.dim))
    except np.linalg.LinAlgError as error:
        raise PeerError("a scatter must be positive semi-definite", kind="range") from error
