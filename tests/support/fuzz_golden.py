"""Mutants of the golden messages, field by field, into `codec.decode` and into nodes.

The messages of `tests/golden/v1` hold every field of every kind. Each is readdressed, so that a
node would take it, and then damaged: numbers at the edges and beyond, fields repeated, missing or
of another message, arrays cut short, NaN, numbers near zero, NUL in names, deep nesting.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from submerge import Schema
from submerge.protocol.messages import Answer, Join, Joined, Message, Model, Report, Stamp
from submerge.protocol.score_trail import NO_TRAIL
from submerge_proto.wire import codec
from support.fuzz_world import BELOW, CHILDREN, PARENT, STORES, World
from support.nodes import EPOCH, GROUP, Host, new_incarnation
from support.wire import relabelled

FOLDER = Path(__file__).parents[1] / "golden" / "v1"


@cache
def golden() -> Mapping[str, Message]:
    """Return the golden messages between nodes by name: those of jobs are for other machines."""
    found = {}
    for path in sorted(FOLDER.glob("*.bin")):
        kind = path.name.split(".")[0].split("_")[0]
        if kind == "job":
            continue
        wire: Any = "watch" if kind in ("hello", "model") else kind
        found[path.stem] = codec.decode(wire, path.read_bytes())
    return found


@cache
def schemas() -> tuple[Schema, ...]:
    """Return the schemas that golden messages are of, as far as messages hold them."""
    texts = {m.schema for m in golden().values() if isinstance(m, Join | Joined | Model)}
    return tuple(Schema.parse(text) for text in sorted(texts) if _is_schema(text))


def _is_schema(text: bytes) -> bool:
    try:
        return "form" in json.loads(text)
    except ValueError:
        return False


class GoldenWorld(World):
    """A world in which everything that is said is a golden message, readdressed."""

    def __init__(self, seed: int) -> None:
        known = schemas()
        super().__init__(seed, schema=known[seed % len(known)])
        self._names = sorted(golden())

    def draws(self) -> tuple[str, Message]:
        """Return a node, and what somebody says to it."""
        rng = self.rng
        message = golden()[str(rng.choice(self._names))]
        if isinstance(message, Join | Report):
            label = str(rng.choice(["r", "a", "b"]))
            return label, self._to_parent(message, self.table.hosts[label])
        label = str(rng.choice(["b", "c"]))
        return label, self._to_child(message, label)

    def _to_parent(self, message: Join | Report, host: Host) -> Message:
        """Return a child's message as that aggregator would take it."""
        rng = self.rng
        above = bool(message.fence)
        node = BELOW if above else str(rng.choice(CHILDREN))
        incarnation = new_incarnation(
            2 * (int(self.table.time) // 2000) + int(rng.choice([1, 2, 3, 90]))
        )
        seq = max(0, int(self.table.time) + int(rng.choice([-5, 0, 1, 2, 3])))
        stamp = Stamp(node, GROUP, incarnation, seq)
        fence = b"\1" * 16 if above else b""
        if isinstance(message, Join):
            text = self.schema.canonical if rng.random() < 0.7 else message.schema
            return message._replace(stamp=stamp, fence=fence, schema=text)
        status = message.alarm_status
        if status is not None and not above:
            own = tuple(replace(each, node=node) for each in status.alarms)
            status = replace(status, alarms=own)
        counts = replace(message.counts, learnt=message.counts.learnt + seq)
        schema, summary = self.schema, message.summary
        if summary is not None and self._fits(summary):
            summary = relabelled(summary, schema.fingerprint)
        elif summary is not None:
            summary = self._summary(float(min(counts.learnt, 100)))
        moments = message.moments
        if moments is not None and len(moments.mean) != schema.width:
            moments = self._moments(min(moments.count, counts.learnt))
        return replace(
            message,
            stamp=stamp,
            pinned=host.node.incarnation,
            fence=fence,
            fingerprint=schema.fingerprint,
            summary=summary,
            moments=moments,
            counts=counts,
            as_of=EPOCH + self.table.time,
            alarm_status=status,
            trail=NO_TRAIL if above else message.trail,
        )

    def _fits(self, summary: Any) -> bool:
        return self.table.summaries.fits(self.schema, relabelled(summary, self.schema.fingerprint))

    def _to_child(self, message: Message, label: str) -> Message:
        """Return a parent's message as that child would take it."""
        asked, said = self._asked.get(label), self._said.get(label)
        match message:
            case Joined() if asked is not None:
                # As it stands: a parent that takes whole scatters, or one that does not.
                text = self._text() if message.schema else b""
                return message._replace(
                    stamp=asked.stamp._replace(seq=min(message.stamp.seq, asked.stamp.seq)),
                    fence=asked.fence,
                    pinned=STORES[0] if message.pinned else None,
                    schema=text,
                )
            case Answer() if said is not None:
                newest = min(message.newest, said.stamp.seq)
                pinned = STORES[0] if message.pinned else None
                return message._replace(
                    stamp=said.stamp, fence=said.fence, pinned=pinned, newest=newest
                )
            case Model():
                self._version += int(self.rng.integers(1, 1000))
                schema, summary = self.schema, message.summary
                if summary is not None and self._fits(summary):
                    summary = relabelled(summary, schema.fingerprint)
                elif summary is not None:
                    summary = self._summary(1000.0)
                return replace(
                    message,
                    group=GROUP,
                    version=self._version,
                    schema=schema.canonical,
                    fingerprint=schema.fingerprint,
                    summary=summary,
                )
            case _:
                hello = golden()["hello"]._replace(node=PARENT, incarnation=STORES[0])
                return hello if not isinstance(message, Joined | Answer) else self._model()


def nested(data: bytes, rng: np.random.Generator) -> bytes:
    """Return a message with a deep nest behind it: of messages, of groups, or of JSON."""
    depth = int(rng.choice([10, 100, 2000]))
    match int(rng.integers(3)):
        case 0:
            inner = b""
            for _ in range(min(depth, 200)):
                tag = int(rng.choice([10, 18, 26, 50, 66, 138]))
                inner = _varint(tag) + _varint(len(inner)) + inner
            return data + inner
        case 1:
            return data + b"\x0b" * depth + b"\x0c" * depth
        case _:
            text = b'{"form":1,"features":' * depth
            return data + b"\x22" + _varint(len(text)) + text


def _varint(number: int) -> bytes:
    out = bytearray()
    while number > 0x7F:
        out.append(number & 0x7F | 0x80)
        number >>= 7
    out.append(number)
    return bytes(out)
