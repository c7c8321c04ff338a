"""An aggregator's records as protobuf, and back: a module of its own, which no client loads."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np

from submerge import PeerError, Schema
from submerge.aggregator.node import StoreIdentity
from submerge.aggregator.operators.quarantine import Cause, QuarantineEntry, Slip
from submerge.aggregator.rows.influence import GroupTime
from submerge.aggregator.rows.ledger import Membership
from submerge.aggregator.rows.pool import Row, Sealed
from submerge.aggregator.rows.releases import Release
from submerge.aggregator.upward import Lineage
from submerge.errors import UsageError
from submerge.history.knowledge import Learnt
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.desired_state import MOST_DESIRED, DesiredState
from submerge.protocol.history import History
from submerge.protocol.messages import Incarnation
from submerge_proto.files import learnt
from submerge_proto.kept.client import PIN, REPORT
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import alarms, forms, parts, summaries, triangles
from submerge_proto.wire.fields import PLAIN, Part, choice, finite, form, real, several

T = TypeVar("T")


def history_from(saved: Learnt, *, most_rows: float = math.inf, pushed: float = 0.0) -> History:
    """Return what a model file holds as a history; one that was saved below a root holds none."""
    if saved.summary is None:
        raise PeerError("it holds nothing that merges: it was saved at an aggregator below a root")
    if not most_rows >= 0:
        raise PeerError(f"expected a number of rows, got {most_rows!r}")
    known = saved.model, saved.summary, saved.sketches, saved.chunks, saved.origin
    return History(*known, most_rows=most_rows, pushed=pushed)


def _history(value: History) -> pb.History:
    held = Learnt(
        value.model,
        value.summary,
        sketches=value.sketches,
        chunks=value.chunks,
        origin=value.origin,
    )
    most = value.most_rows if value.most_rows < math.inf else 0.0
    return pb.History(learnt=learnt.packed(held), most_rows=most, pushed_s=value.pushed)


def _history_of(message: pb.History) -> History:
    most = real("most_rows", message.most_rows)
    return history_from(
        learnt.unpacked(message.learnt).learnt,
        most_rows=most or math.inf,
        pushed=real("pushed", message.pushed_s),
    )


HISTORY = Part(_history, _history_of, message=pb.History)

_STORE = form(pb.StoreIdentity, StoreIdentity, incarnation=parts.INCARNATION, pin=PIN.maybe)

_LINE = form(
    pb.Lineage,
    Lineage,
    seq=PLAIN,
    fence=parts.FENCE,
    past=several(parts.PAST_FENCE),
    admitted=parts.FENCE,
)

_AS_OF = finite("as_of").at("as_of_s")


def _row_of(message: pb.Row) -> Row:
    read = forms.report_of if message.as_received else REPORT.read
    parts.check_version(message.report.header.version)
    return Row(read(message.report), message.digest, _AS_OF.read(message.as_of_s))


_SEALED_FIELDS: Part[Any] = form(
    pb.Sealed, dict, moments=parts.MOMENTS.maybe, counts=parts.COUNTS, as_of=_AS_OF
)


def _sealed(value: Sealed) -> pb.Sealed:
    message: pb.Sealed = _SEALED_FIELDS.made(value)
    if value.summary is not None:
        # Exact: folding it again must give the same bytes as without a restart.
        summaries.put(message, value.summary, exact=True)
        message.fingerprint = bytes.fromhex(summaries.fingerprint_of(value.summary))
    return message


def _sealed_of(message: pb.Sealed) -> Sealed:
    summary = None
    if message.HasField("subspace") or message.HasField("linear"):
        fingerprint = parts.FINGERPRINT.read(message.fingerprint)
        summary = summaries.of(message, fingerprint, kept=True)
    return Sealed(summary=summary, **_SEALED_FIELDS.read(message))


_ROW = replace(form(pb.Row, Row, report=REPORT, digest=PLAIN, as_of=_AS_OF), read=_row_of)

_SEALED = Part(_sealed, _sealed_of, message=pb.Sealed)


def _mapping(message: Any, field: str, part: Part[Any]) -> Part[Any]:
    """Return how what is known of each incarnation is a repeated field."""

    def made(value: Mapping[Incarnation, Any]) -> list[Any]:
        return [
            message(incarnation=parts.INCARNATION.made(name), **{field: part.made(each)})
            for name, each in value.items()
        ]

    def read(sent: Any) -> dict[Incarnation, Any]:
        return {
            parts.INCARNATION.read(each.incarnation): part.read(getattr(each, field))
            for each in sent
        }

    return Part(made, read)


_MEMBER = form(
    pb.Membership,
    Membership,
    closed=_mapping(pb.Membership.Closed, "seq", PLAIN),
    floor=PLAIN.at("floor_ms"),
    fences=_mapping(pb.Membership.Fence, "fence", parts.FENCE),
)

_NODES: Part[Any] = Part(
    lambda value: pb.Nodes(names=sorted(value)),
    lambda message: frozenset(message.names),
    message=pb.Nodes,
)

_CAUSE: Part[Cause] = choice(
    "cause",
    {
        "operator": pb.CAUSE_OPERATOR,
        "shrunk": pb.CAUSE_SHRUNK,
        "equivocated twice": pb.CAUSE_EQUIVOCATED_TWICE,
        "unreadable": pb.CAUSE_UNREADABLE,
    },
)

_ENTRY = form(
    pb.Quarantined.Node, QuarantineEntry, cause=_CAUSE, since=finite("since").at("since_s")
)

_SLIP = form(pb.QuarantineSlips.Node, Slip, at=finite("time").at("at_s"), digest=PLAIN)


def _by_name(message: Any, part: Part[T]) -> Part[dict[str, T]]:
    """Return how what is known of each node is a message with a field `nodes`."""

    def made(value: Mapping[str, T]) -> Any:
        nodes = {name: part.made(each) for name, each in value.items()}
        for name, node in nodes.items():
            node.name = name
        return message(nodes=nodes.values())

    def read(sent: Any) -> dict[str, T]:
        return {each.name: part.read(each) for each in sent.nodes}

    return Part(made, read, message=message)


_QUARANTINED = _by_name(pb.Quarantined, _ENTRY)


def _quarantined_of(message: pb.Quarantined) -> dict[str, QuarantineEntry]:
    earlier = {name: QuarantineEntry("operator", 0.0) for name in message.names}
    return earlier | _QUARANTINED.read(message)


_WISHES = several(alarms.DESIRED_STATE, "desired states", MOST_DESIRED)

_DESIRED_STATES: Part[dict[str, DesiredState]] = Part(
    lambda value: pb.DesiredStates(desired_states=_WISHES.made(tuple(value.values()))),
    lambda message: {each.node: each for each in _WISHES.read(message.desired_states)},
    message=pb.DesiredStates,
)

_NUMBERS = Part(
    lambda array: np.ascontiguousarray(array, dtype="<i8").tobytes(),
    lambda sent: np.frombuffer(sent, "<i8").astype(np.int64),
)


def _release(value: Release) -> pb.Release:
    sums = value.summary
    if not isinstance(sums, WholeScatter):
        raise UsageError("a release is of a whole scatter")
    message = pb.Release(
        sums=triangles.packed(sums, exact=True),
        fingerprint=bytes.fromhex(value.fingerprint),
        told=forms.TOLD.made(value.told),
        **{name: getattr(value, name) for name in _RELEASED},
    )
    for level, each in value.noises.items():
        message.noises.add(level=level, numbers=_NUMBERS.made(each))
    return message


def _release_of(message: pb.Release) -> Release:
    fingerprint = parts.FINGERPRINT.read(message.fingerprint)
    return Release(
        **{name: getattr(message, name) for name in _RELEASED},
        told=forms.TOLD.read(message.told),
        fingerprint=fingerprint,
        noises={each.level: _NUMBERS.read(each.numbers) for each in message.noises},
        summary=triangles.unpacked(message.sums, fingerprint, kept=True),
    )


_RELEASED = "rho", "spent", "share", "number", "rows", "left"

_RELEASE = Part(_release, _release_of, message=pb.Release)

_GROUP_TIME = form(
    pb.GroupTime,
    GroupTime,
    elapsed=finite("time").at("elapsed_s"),
    wall=finite("time").at("wall_s"),
)


def _value(message: Any, part: Part[Any] = PLAIN) -> Part[Any]:
    return Part(
        lambda value: message(value=part.made(value)),
        lambda sent: part.read(sent.value),
        message=message,
    )


def _schema(text: bytes) -> bytes:
    if text:  # empty while it is not known
        Schema.parse(text)
    return text


_SCHEMA = _value(pb.Text, Part(PLAIN.made, _schema))

_TIME, _NUMBER = _value(pb.Real, finite("time")), _value(pb.Number)

FORMS: dict[str, Part[Any]] = {
    "store": _STORE,
    "line": _LINE,
    "row": _ROW,
    "sealed": _SEALED,
    "history": HISTORY,
    "member": _MEMBER,
    "banned": _NODES,
    "quarantined": replace(_QUARANTINED, read=_quarantined_of),
    "suspected": _by_name(pb.QuarantineSlips, _SLIP),
    "wishes": _DESIRED_STATES,
    "heard": _NUMBER,
    "schema": _SCHEMA,
    "asked": _SCHEMA,
    "earlier": _SCHEMA,
    "version": _NUMBER,
    "rank": _NUMBER,
    "reference": _TIME,
    "first": _TIME,
    "job": _value(pb.Text),
    "left": _NUMBER,
    "release": _RELEASE,
    "elapsed": _GROUP_TIME,
}
"""By the first word of a record's key."""
