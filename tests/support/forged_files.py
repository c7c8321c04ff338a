"""Model files in the wrong hands: changed behind their digest, which keeps no forger out."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import numpy as np

from submerge_proto.files.learnt import FORM, MARK
from submerge_proto.v1 import aggregator_service_pb2 as wire
from submerge_proto.v1 import kept_pb2
from submerge_proto.v1 import learnt_pb2 as pb
from support.damage import damaged, mutate


def sealed(payload: bytes) -> bytes:
    """Return a payload as a file, with the digest that it has."""
    about = {"bytes": len(payload), "sha256": hashlib.sha256(payload).hexdigest()}
    return b"%s%d %s\n%s" % (MARK, FORM, json.dumps(about).encode(), payload)


def payload_of(data: bytes) -> bytes:
    """Return the payload of a file."""
    return data.partition(b"\n")[2]


def message_of(data: bytes) -> Any:
    """Return the message in a file."""
    return pb.Learnt.FromString(payload_of(data))


def forged(data: bytes, rng: np.random.Generator) -> bytes:
    """Change a field of a file, or of the messages in it, or its bytes."""
    message = message_of(data)
    match int(rng.integers(6)):
        case 0:
            return sealed(damaged(payload_of(data), rng))
        case 1:
            model = wire.WatchResponse.FromString(message.model)
            mutate(model.model, rng)
            message.model = model.SerializePartialToString()
        case 2 if message.monitors:
            of = message.monitors[int(rng.integers(len(message.monitors)))]
            state = kept_pb2.NodeMonitor.FromString(of.state)
            mutate(state, rng)
            of.state = state.SerializePartialToString()
        case _:
            mutate(message, rng)
    return sealed(message.SerializePartialToString())
