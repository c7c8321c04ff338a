"""make_copy(): a whole copy of a running root's store, in a file without a name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable
from dataclasses import replace

from submerge import SubmergeError, UsageError, __version__
from submerge.protocol.machine import Now
from submerge_aggregator.backup.copy_file import PIECE, CopyIdentity, line_of
from submerge_aggregator.backup.row_models import group_states
from submerge_aggregator.worker import CommitWorker

BELOW = (
    "expected a root, got an aggregator with a parent: a copy of its store is of no use, for its"
    " parent gives it up; back up the root"
)


def refuse_below(worker: CommitWorker) -> None:
    """Check that an aggregator is a root; raises UsageError if it has a parent."""
    if worker.node is not None and not worker.node.top:
        raise UsageError(BELOW)


def make_copy(
    worker: CommitWorker, clock: Callable[[], Now], progress: Callable[[int, int], None]
) -> tuple[int, CopyIdentity]:
    """Copy the store of a root while it runs; for a thread of its own.

    progress : Called with bytes copied, and bytes in all, in this thread.

    Returns
    -------
    fd : int
        The copy, to read from its start; the caller closes it.
    identity : CopyIdentity

    Raises UsageError if it is no root; CopyFailed if there is no room, or the store is closed;
    SubmergeError if the store cannot be written now.
    """

    def at_end() -> CopyIdentity:
        node, now = worker.node, clock()
        refuse_below(worker)
        if node is None:
            raise SubmergeError("the store cannot be written now: ask again")
        return CopyIdentity(
            node.settings.node,
            str(node.incarnation),
            __version__,
            now.wall,
            now.synced,
            group_states(node, now),
        )

    fd, identity = worker.store.copies.make(at_end, progress)
    try:
        return fd, _finished(fd, identity)
    except BaseException:
        os.close(fd)
        raise


def _finished(fd: int, identity: CopyIdentity) -> CopyIdentity:
    """Write the line behind the database."""
    size, digest, at = os.fstat(fd).st_size, hashlib.sha256(), 0
    while piece := os.pread(fd, PIECE, at):
        digest.update(piece)
        at += len(piece)
    whole = replace(identity, bytes=size)
    os.pwrite(fd, line_of(whole, digest), size)
    return whole
