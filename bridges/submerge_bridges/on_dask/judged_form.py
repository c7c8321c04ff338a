"""What came of a machine's rows as bytes, and back: in the encoding of model files."""

from __future__ import annotations

import numpy as np

from submerge.history.second_pass import JudgedMachine, NewestRows
from submerge.schema import Schema
from submerge_bridges.on_dask.packing import packed, unpacked
from submerge_proto.files import monitors
from submerge_proto.v1 import learnt_pb2 as pb
from submerge_proto.wire import scores

NAME = "machine"
"""In place of a machine's name, which its number stands for."""


def judged_bytes(key: tuple[int, int], judged: JudgedMachine, *, with_newest: bool) -> bytes:
    """Return what came of a span of a machine's rows.

    key : numbers of the machine, as in `Cell`, and of the span
    with_newest : whether its newest rows are wanted
    """
    message = pb.Learnt(monitors=monitors.monitors([(NAME, judged.state)]))
    message.scores.CopyFrom(scores.scores(judged.sketches))
    newest = judged.newest.rows if with_newest else np.empty((0, 0))
    head = {
        "key": key,
        "lengths": judged.lengths,
        "newest": judged.newest.machine if with_newest else None,
        "shape": newest.shape,
    }
    data = message.SerializeToString(deterministic=True)
    return packed(head, [data, np.ascontiguousarray(newest, dtype="<f8").tobytes()])


def judged_of(data: bytes, schema: Schema) -> tuple[tuple[int, int], JudgedMachine]:
    """Return the numbers of a machine and a span, and what came of its rows."""
    head, (learnt, newest) = unpacked(data)
    message = pb.Learnt.FromString(learnt)
    ((_, state),) = monitors.monitors_of(message.monitors, schema, 1)
    rows = np.frombuffer(newest, dtype="<f8").reshape(head["shape"])
    held = NewestRows.of(head["newest"], rows)
    sketches = scores.scores_of(message.scores)
    machine, span = head["key"]
    return (machine, span), JudgedMachine(sketches, tuple(head["lengths"]), state, held)
