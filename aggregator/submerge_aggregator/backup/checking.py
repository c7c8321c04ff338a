"""Whether a copy is good: opened offline, and held against what the running machine had.

A machine starts from the copy, as an aggregator would, at the time of the copy. It takes no
message and sends none. The models that follow from its rows have to be those of the machine that
ran, byte for byte.
"""

from __future__ import annotations

import hashlib
import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

import msgspec

from submerge.aggregator.node import STORE, AggregatorNode, StoreIdentity
from submerge.aggregator.root.new_model import new_model
from submerge.aggregator.rows.influence import GroupTime
from submerge.aggregator.rows.ledger import Ledger
from submerge.errors import PeerError, SubmergeError, UsageError
from submerge.protocol.machine import Key, Now
from submerge_aggregator.batch import checked
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.store import APPLICATION_ID, FORM, StoreDamaged, records_in
from submerge_client.memory import SystemEntropy
from submerge_proto.kept import records
from submerge_proto.wire import codec

# The SHA-256 is of all before it and of the JSON text behind it, so a copy that a disk has
# changed, or that was cut short, is refused before anything in it is read.


COPY_FORM = 1
MARK = b"\nsubmerge backup "

MOST_LINE = 1 << 20
"""Longest line: a hundred bytes or two for each group."""

PIECE = 1 << 20
"""Bytes that are read at a time."""


class CopyDamaged(SubmergeError):
    """A copy that is not as it was made."""

    def __init__(self, path: str | os.PathLike[str], why: str) -> None:
        super().__init__(f"{os.fspath(path)} is damaged: {why}; take another copy")


@dataclass(frozen=True, slots=True)
class GroupState:
    """What a group was at a copy's commit, in the machine that ran.

    fingerprint : Of its schema.
    learnt : Readings that its rows count.
    elapsed : The group's time, which ages of nodes follow: a store keeps it once an hour.
    model : SHA-256 of the model that followed from its rows (`row_models.model_of_rows`).
    """

    fingerprint: str
    learnt: int
    elapsed: float
    model: str


@dataclass(frozen=True, slots=True)
class CopyIdentity:
    """Whose copy it is, and of which commit."""

    node: str
    incarnation: str
    software: str
    wall: float
    synced: bool
    groups: dict[str, GroupState]
    bytes: int = 0

    @property
    def now(self) -> Now:
        """The time of the copy, for a machine that starts from it."""
        return Now(0.0, self.wall, self.synced)


def line_of(identity: CopyIdentity, digest: hashlib._Hash) -> bytes:
    """Return the line behind a database, whose SHA-256 so far is `digest`."""
    about = msgspec.json.encode(identity)
    digest.update(about)
    return b"%s%d %s %s\n" % (MARK, COPY_FORM, digest.hexdigest().encode(), about)


def identity_of(path: Path, progress: Callable[[int], None] = lambda _: None) -> CopyIdentity:
    """Return whose copy a file is, once all of it was read."""
    try:
        with path.open("rb") as file:
            about, stated, size = _line_in(file, path)
            digest, left = hashlib.sha256(), size
            file.seek(0)
            while left:
                piece = file.read(min(PIECE, left))
                if not piece:
                    raise CopyDamaged(path, "it became shorter while it was read")
                digest.update(piece)
                left -= len(piece)
                progress(len(piece))
    except OSError as error:
        raise UsageError(f"expected a copy in {path}, got: {error.strerror or error}") from error
    digest.update(about)
    if digest.hexdigest().encode() != stated:
        raise CopyDamaged(path, "its bytes are not those that were written")
    try:
        identity = msgspec.json.decode(about, type=CopyIdentity)
    except msgspec.MsgspecError as error:
        raise UsageError(f"{path} was made by another version of submerge: {error}") from error
    if identity.bytes != size:
        raise CopyDamaged(path, f"{identity.bytes} bytes were written, and {size} are there")
    return identity


def _line_in(file: BinaryIO, path: Path) -> tuple[bytes, bytes, int]:
    """Return the JSON text, the digest, and how many bytes come before the line."""
    size = file.seek(0, os.SEEK_END)
    file.seek(-min(size, MOST_LINE), os.SEEK_END)
    _, mark, line = file.read().rpartition(MARK)
    form, _, rest = line.partition(b" ")
    stated, _, about = rest.partition(b" ")
    if not mark or not about.endswith(b"\n"):
        file.seek(0)
        if file.read(16) == b"SQLite format 3\0":
            raise CopyDamaged(path, "it ends without the line that says whose it is")
        raise UsageError(
            f"expected a copy that `submerge backup` has made, got another file: {path}"
        )
    if form != b"%d" % COPY_FORM:
        raise UsageError(f"{path} was made by a later submerge: update submerge")
    return about[:-1], stated, size - len(mark) - len(line)


def group_states(node: AggregatorNode, now: Now) -> dict[str, GroupState]:
    """Return what each group is now; one without a schema is left out.

    Cost: a merge of the rows that have changed since the last one, as for a model.
    """
    ledgers = {name: node.ledger(name) for name in sorted(node.groups)}
    return {
        name: _state(node, ledger, now, name)
        for name, ledger in ledgers.items()
        if ledger is not None
    }


def _state(node: AggregatorNode, ledger: Ledger, now: Now, group: str) -> GroupState:
    model = model_of_rows(node, ledger, now, group)
    return GroupState(
        ledger.fingerprint,
        ledger.counts().learnt,
        ledger.ages.elapsed,
        hashlib.sha256(model).hexdigest(),
    )


def model_of_rows(node: AggregatorNode, ledger: Ledger, now: Now, group: str) -> bytes:
    """Return the model that follows from rows and histories: directions, factors, limits, counts.

    The chosen rank is none of these: it is a record of its own.
    """
    canonical = ledger.schema.canonical
    made = new_model(ledger, canonical, node.settings, now, node.plan(group), last=0, rank=0)
    return codec.encode(
        replace(
            made,
            version=1,
            nodes=0,
            staleness=(0.0, 0.0, 0.0),
            created=0.0,
            expires=0.0,
            maxima=None,
            widened=1.0,
            block_s=0.0,
        )
    )


class StoreCopy(NamedTuple):
    """A copy that is whole."""

    path: Path
    identity: CopyIdentity
    kept: dict[Key, bytes]


class GroupCheck(NamedTuple):
    """What a group's model is, by the copy and in the machine that ran."""

    group: str
    learnt: int
    differs: str


def read_copy(path: Path, progress: Callable[[int], None] = lambda _: None) -> StoreCopy:
    """Return a copy, whole; the file is only read."""
    identity = identity_of(path, progress)
    # Immutable: SQLite then makes no file beside it, and takes no lock.
    at = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(at, uri=True)) as sql:
            (owner,) = sql.execute("PRAGMA application_id").fetchone()
            (form,) = sql.execute("PRAGMA user_version").fetchone()
            if owner == APPLICATION_ID and form > FORM:
                raise UsageError(f"{path} was made by a later submerge: update submerge")
            if owner == APPLICATION_ID and form < FORM:
                raise UsageError(
                    f"{path} was made by submerge before 28 November 2026: restore it with the"
                    " submerge of that day (commit f0bc8489)"
                )
            if owner != APPLICATION_ID:
                raise CopyDamaged(path, "the database in it is another program's")
            return StoreCopy(path, identity, records_in(sql, str(path)))
    except StoreDamaged as error:
        raise CopyDamaged(path, error.reason) from error
    except (sqlite3.Error, UnicodeDecodeError) as error:
        raise CopyDamaged(path, str(error)) from error


def check_models(copy: StoreCopy, config: AggregatorConfig) -> list[GroupCheck]:
    """Start a machine from a copy, and compare its models."""
    kept = root_records(copy, config)
    known = copy.identity
    for name, state in known.groups.items():
        # A store keeps it once an hour, and what is bounded by the age of a node follows it.
        time = GroupTime(state.elapsed, known.wall if known.synced else 0.0)
        kept["elapsed", name] = time
    node = AggregatorNode(config.settings, checked(config.plans, coarse=False), SystemEntropy())
    node.load(kept, known.now)
    found = group_states(node, known.now)
    return [
        GroupCheck(name, state.learnt, _difference(state, found.get(name)))
        for name, state in sorted(known.groups.items())
    ]


def root_records(copy: StoreCopy, config: AggregatorConfig) -> dict[Key, Any]:
    """Return the records of a root's copy, for that root."""
    path, identity = copy.path, copy.identity
    if config.parent is not None:
        raise UsageError(
            f"expected the configuration of a root, got {config.node}'s, whose parent is"
            f" {config.parent.name}: a store below a root that is a copy is given up. Start it"
            " without a store instead: its children report all that they hold"
        )
    if identity.node != config.node:
        raise UsageError(
            f"expected a copy of {config.node}, which the configuration names, got one of"
            f" {identity.node}: {path}"
        )
    try:
        kept = records.unpack_all(copy.kept)
    except PeerError as error:
        raise CopyDamaged(path, str(error)) from error
    store: StoreIdentity | None = kept.get(STORE)
    if store is None:
        raise CopyDamaged(path, "it does not say whose store it is")
    if store.pin is not None:
        raise UsageError(
            f"{path} is the store of an aggregator below {store.pin.parent}: its parent would"
            " give it up. Start that aggregator without a store instead"
        )
    return kept


def refuse_different(checks: list[GroupCheck]) -> None:
    """Check that all models are the same; raises SubmergeError if one is not."""
    wrong = [f"{each.group}: {each.differs}" for each in checks if each.differs]
    if wrong:
        raise SubmergeError(f"the models are not those of the root that ran: {'; '.join(wrong)}")


def _difference(was: GroupState, found: GroupState | None) -> str:
    if found is None:
        return "the configuration has no such group"
    if found.fingerprint != was.fingerprint:
        return "its schema is another: has the configuration changed since?"
    if found.learnt != was.learnt:
        return f"{found.learnt:,} readings of {was.learnt:,}"
    if found.model != was.model:
        return "the same readings give another model: has the configuration changed since?"
    return ""
