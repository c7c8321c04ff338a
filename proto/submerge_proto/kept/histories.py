"""A root's histories as records, and back: model files, with what an operator said of them."""

from __future__ import annotations

import math

from submerge import PeerError
from submerge.history.knowledge import Learnt
from submerge.protocol.history import History
from submerge_proto.files import learnt
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import parts


def history(value: History) -> pb.History:
    """Return a history as a message."""
    held = Learnt(
        value.model,
        value.summary,
        sketches=value.sketches,
        chunks=value.chunks,
        origin=value.origin,
    )
    most = value.most_rows if value.most_rows < math.inf else 0.0
    return pb.History(learnt=learnt.packed(held), most_rows=most, pushed_s=value.pushed)


def history_of(message: pb.History) -> History:
    """Return the history in a message."""
    most = parts.real("most_rows", message.most_rows)
    return history_from(
        learnt.unpacked(message.learnt).learnt,
        most_rows=most or math.inf,
        pushed=parts.real("pushed", message.pushed_s),
    )


def history_from(saved: Learnt, *, most_rows: float = math.inf, pushed: float = 0.0) -> History:
    """Return what a model file holds as a history.

    Raises PeerError if it holds nothing that merges: it was saved below a root.
    """
    if saved.summary is None:
        raise PeerError("it holds nothing that merges: it was saved at an aggregator below a root")
    if not most_rows >= 0:
        raise PeerError(f"expected a number of rows, got {most_rows!r}")
    known = saved.model, saved.summary, saved.sketches, saved.chunks, saved.origin
    return History(*known, most_rows=most_rows, pushed=pushed)
