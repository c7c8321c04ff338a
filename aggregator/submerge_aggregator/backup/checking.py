"""Whether a copy is good: opened offline, and held against what the running machine had.

A machine starts from the copy, as an aggregator would, at the time of the copy. It takes no
message and sends none. The models that follow from its rows have to be those of the machine that
ran, byte for byte.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

from submerge.aggregator.node import STORE, AggregatorNode, StoreIdentity
from submerge.aggregator.rows.influence import GroupTime
from submerge.errors import PeerError, SubmergeError, UsageError
from submerge.protocol.machine import Key
from submerge_aggregator.backup.copy_file import (
    CopyDamaged,
    CopyIdentity,
    GroupState,
    identity_of,
)
from submerge_aggregator.backup.row_models import group_states
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.readable import checked
from submerge_aggregator.store import APPLICATION_ID, FORM, StoreDamaged, records_in
from submerge_client.memory.entropy import SystemEntropy
from submerge_proto.kept import records


class StoreCopy(NamedTuple):
    """A copy that is whole.

    kept : its records, as bytes
    """

    path: Path
    identity: CopyIdentity
    kept: dict[Key, bytes]


class GroupCheck(NamedTuple):
    """What a group's model is, by the copy and in the machine that ran.

    differs : why they are not the same; empty if they are
    """

    group: str
    learnt: int
    differs: str


def read_copy(path: Path, progress: Callable[[int], None] = lambda _: None) -> StoreCopy:
    """Return a copy, whole; the file is only read.

    progress : as for `identity_of`

    Raises UsageError if it is no copy, or a later version's; CopyDamaged if it is not as it was
    made.
    """
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
    """Start a machine from a copy, and compare its models.

    Raises UsageError if the copy or the configuration is not a root's, or they are of two roots;
    CopyDamaged if a record cannot be read.
    """
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
    """Return the records of a root's copy, for that root.

    Raises UsageError if the copy or the configuration is not a root's, or they are of two roots;
    CopyDamaged if a record cannot be read.
    """
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
