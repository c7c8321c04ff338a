"""Run `submerge` with a failpoint: at a certain moment of its work it dies as by `kill -9`.

    python -m support.failing POINT N -- aggregator --config root.toml

SIGUSR1 arms it: from then on the N-th time that the program comes to POINT is its last. What
ships knows nothing of this; the points are wrapped around it from outside.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

LEFT_S = 0.05
"""How long acknowledgements have to leave, before the process that was to publish dies."""


class Fuse:
    """Counts calls down, once it is armed."""

    def __init__(self, calls: int) -> None:
        self._calls = calls
        self._armed = False

    def arm(self, *_: object) -> None:
        self._armed = True

    def burns(self) -> bool:
        """Count a call; return whether it is the last."""
        self._calls -= self._armed
        return self._calls < 1


def die() -> None:
    """Die as by `kill -9`."""
    os.kill(os.getpid(), signal.SIGKILL)


# -- an aggregator's ----------------------------------------------------------------------


def before_commit(fuse: Fuse) -> None:
    """Die with a transaction written, and not committed."""
    from submerge_aggregator.store import Store

    whole = Store._transaction

    @contextmanager
    def transaction(store: Store) -> Iterator[None]:
        with whole(store):
            yield
            if fuse.burns():
                die()

    Store._transaction = transaction  # type: ignore[assignment, method-assign]


def after_commit(fuse: Fuse) -> None:
    """Die between a commit and the acknowledgements that rest on it."""
    from submerge_aggregator.store import Store

    _dies_after(Store, "write", fuse)


def before_publish(fuse: Fuse) -> None:
    """Die when acknowledgements have left, and what is to be said to others has not.

    Upward or to all children: mostly in a turn of its own, which its time has come for.
    """
    from submerge_aggregator.batch import All, Out, Up
    from submerge_aggregator.server import Server

    perform = Server._perform
    dying = False

    def performed(server: Server, outs: Sequence[Out]) -> None:
        nonlocal dying
        if dying:
            return
        if any(isinstance(out, All | Up) for out in outs) and fuse.burns():
            dying = True
            asyncio.get_running_loop().call_later(LEFT_S, die)
            outs = [out for out in outs if not isinstance(out, All | Up)]
        perform(server, outs)

    Server._perform = performed  # type: ignore[assignment, method-assign]


# -- a client's ----------------------------------------------------------------------------


def before_checkpoint(fuse: Fuse) -> None:
    """Die with a checkpoint that is to be written."""
    from submerge_client.checkpoint import CheckpointFile

    write = CheckpointFile.write

    def written(*args: Any, **options: Any) -> None:
        if fuse.burns():
            die()
        write(*args, **options)

    CheckpointFile.write = written  # type: ignore[assignment, method-assign]


def torn_checkpoint(fuse: Fuse) -> None:
    """Die when half of a checkpoint's bytes are written."""
    pwrite = os.pwrite

    def half(fd: int, data: Any, offset: int) -> int:
        if fuse.burns():
            pwrite(fd, data[: len(data) // 2], offset)
            die()
        return pwrite(fd, data, offset)

    os.pwrite = half


def after_checkpoint(fuse: Fuse) -> None:
    """Die when a checkpoint is written, and nothing else has followed from it."""
    from submerge_client.checkpoint import CheckpointFile

    _dies_after(CheckpointFile, "write", fuse)


# -- a client's that tells of an alarm ------------------------------------------------------


def before_keeping(fuse: Fuse) -> None:
    """Die with an alarm that has begun or is over, and of which nothing is on disk."""
    from submerge.client.node import MONITOR
    from submerge.protocol.machine import Keep
    from submerge_client.checkpoint import RecordStore

    keep = RecordStore.keep

    def kept(disk: RecordStore, effect: Keep) -> None:
        # A checkpoint keeps it with other records.
        if set(effect.records) == {MONITOR} and fuse.burns():
            die()
        keep(disk, effect)

    RecordStore.keep = kept  # type: ignore[method-assign]


def before_telling(fuse: Fuse) -> None:
    """Die when that is on disk, and nobody was told."""
    _dies_around_telling(fuse, before=True)


def before_noting(fuse: Fuse) -> None:
    """Die when a line of it is written, and not noted as told."""
    from submerge_client.alarms.ndjson import File

    _dies_after(File, "write", fuse)


def after_telling(fuse: Fuse) -> None:
    """Die when it is told, and in no report."""
    _dies_around_telling(fuse, before=False)


def _dies_around_telling(fuse: Fuse, *, before: bool) -> None:
    from submerge.protocol.alarm_status import Alarm
    from submerge_client.alarms import Sinks

    update = Sinks.update

    def reported(sinks: Sinks, alarms: tuple[Alarm, ...]) -> None:
        known = [(each.number, each.ended) for each in sinks.alarms]
        burns = known != [(each.number, each.ended) for each in alarms] and fuse.burns()
        if burns and before:
            die()
        update(sinks, alarms)
        if burns:
            die()

    Sinks.update = reported  # type: ignore[method-assign]


def _dies_after(kind: type, name: str, fuse: Fuse) -> None:
    whole = getattr(kind, name)

    def done(*args: Any, **options: Any) -> None:
        whole(*args, **options)
        if fuse.burns():
            die()

    setattr(kind, name, done)


AGGREGATOR_POINTS: dict[str, Callable[[Fuse], None]] = {
    "before commit": before_commit,
    "between commit and ack": after_commit,
    "between ack and publish": before_publish,
}
CLIENT_POINTS: dict[str, Callable[[Fuse], None]] = {
    "before a checkpoint": before_checkpoint,
    "in a checkpoint": torn_checkpoint,
    "after a checkpoint": after_checkpoint,
}
ALARM_POINTS: dict[str, Callable[[Fuse], None]] = {
    "before an alarm is kept": before_keeping,
    "before an alarm is told": before_telling,
    "before an alarm is noted as told": before_noting,
    "before an alarm is reported": after_telling,
}


def main() -> None:
    point, calls, separator, *args = sys.argv[1:]
    if separator != "--":
        raise SystemExit(__doc__)
    fuse = Fuse(int(calls))
    # First: until then the signal would end the process by itself.
    signal.signal(signal.SIGUSR1, fuse.arm)
    (AGGREGATOR_POINTS | CLIENT_POINTS | ALARM_POINTS)[point](fuse)
    from submerge_operate.cli import main as submerge

    sys.argv[:] = ["submerge", *args]
    submerge()


if __name__ == "__main__":
    main()
