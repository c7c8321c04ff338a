"""pack(), unpack(): the records that nodes keep, as bytes, and back.

The first word of a record's key selects its form. Checkpoints and stores have a checksum over each
record or over all of them: a record from a damaged card never arrives here. It may be from another
version of submerge. So lengths, shapes and finiteness are checked, and the ranges of our own
numbers are not; a record that does not fit is one line, a `PeerError`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from google.protobuf.message import DecodeError

from submerge import PeerError
from submerge.protocol.machine import Key
from submerge_proto.kept import client as kept_by_client
from submerge_proto.kept.client import RecordForm

if TYPE_CHECKING:
    from submerge.aggregator.rows.pool import Row


def pack(key: Key, record: Any) -> bytes:
    """Return a record as bytes."""
    return bytes(_form(key).made(record).SerializeToString())


def unpack(key: Key, data: bytes) -> Any:
    """Return the record that bytes hold; raises PeerError if they hold none."""
    form = _form(key)
    try:
        record = form.read(form.message.FromString(data))
    except (DecodeError, ValueError, PeerError) as error:
        why = "" if isinstance(error, DecodeError | UnicodeDecodeError) else f": {error}"
        raise PeerError(f"expected a whole record {'/'.join(key)} of this version{why}") from error
    if key[0] == "row" and key != row_key(record):
        raise PeerError(f"expected the record {'/'.join(key)}, got {'/'.join(row_key(record))}")
    if key[0] == "history" and key[2:] != (record.name,):
        raise PeerError(f"expected the record {'/'.join(key)}, got history {record.name}")
    return record


def unpack_all(kept: Mapping[Key, bytes]) -> dict[Key, Any]:
    """Return all records of a store."""
    return {key: unpack(key, data) for key, data in kept.items()}


def row_key(row: Row) -> Key:
    """Return the key of a row's record."""
    node, group, (created_ms, nonce), _ = row.report.stamp
    return "row", group, node, str(created_ms), str(nonce)


def _form(key: Key) -> RecordForm:
    word = key[0] if key else ""
    form = kept_by_client.FORMS.get(word)
    if form is None:
        # Imported late: a client keeps none of these, and is 0.4 MiB smaller without.
        from submerge_proto.kept import aggregator as kept_by_aggregator

        form = kept_by_aggregator.FORMS.get(word)
    if form is None:
        raise PeerError(f"expected a known record, got {'/'.join(key)!r}")
    return form
