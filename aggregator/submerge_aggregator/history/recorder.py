"""HistoryRecorder: the history's thread: entries go into a queue, and this thread writes them."""

from __future__ import annotations

import math
import sqlite3
import threading
from collections import deque
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from time import monotonic
from typing import Any, TypeVar

import msgspec
import numpy as np

from submerge import Array, SubmergeError
from submerge.protocol.messages import Model
from submerge_aggregator.batch import AlarmsChanged
from submerge_aggregator.history.file import (
    AlarmRow,
    HistoryFile,
    LevelsKey,
    ModelHeard,
    TrailHeard,
    VersionRow,
    VersionView,
    files_of,
    higher,
    hours_of,
)
from submerge_aggregator.questions.alarm_survey import view_of, with_incidents
from submerge_aggregator.store import primary_code
from submerge_client.logs import say

MOST_SPECTRUM = 32  # directions whose variance is kept

DIGITS = 5


def version_row(
    model: Model, before: Model | None, ranks: Mapping[str, int] | None = None
) -> VersionRow:
    view = VersionView(
        version=model.version,
        created_s=model.created,
        rank=model.rank or _basis(model).shape[1],
        nodes=model.nodes,
        readings=model.counts.learnt,
        angle_deg=None if before is None else angle_between(before, model),
        spectrum=_spectrum(model),
        ranks=ranks or {},
    )
    return VersionRow(model.group, model.created, model.version, msgspec.json.encode(view))


def angle_between(before: Model, after: Model) -> float | None:
    """Return the largest principal angle between the directions that two models score with."""
    if before.fingerprint != after.fingerprint:
        return None
    one, other = _basis(before), _basis(after)
    if one.shape[0] != other.shape[0] or not min(one.shape[1], other.shape[1]):
        return None
    # Of models with another number of directions it is that of the fewer ones.
    if one.shape[1] < other.shape[1]:
        one, other = other, one
    shared = one.T @ other
    # The sine tells small angles, the cosine large ones.
    sine = float(np.linalg.norm(other - one @ shared, 2))
    cosine = float(np.linalg.svd(shared, compute_uv=False).min())
    return round(math.degrees(math.atan2(sine, cosine)), 4)


def _basis(model: Model) -> Array:
    """Return the directions that nodes score with, as columns."""
    parts = () if model.summary is None else model.summary.parts
    if not parts:
        return np.zeros((0, 0))
    basis = np.asarray(parts[-1].basis, np.float64)
    return basis[:, : model.rank] if model.rank else basis


def _spectrum(model: Model) -> list[float]:
    parts = () if model.summary is None else model.summary.parts
    if not parts or not parts[-1].weight > 0.0:
        return []
    variances = parts[-1].sigma[:MOST_SPECTRUM] ** 2 / parts[-1].weight
    return [float(f"{each:.{DIGITS}g}") for each in variances.tolist() if math.isfinite(each)]


class AlarmRows:
    """Alarms of all groups, as they come; for one thread."""

    def __init__(self) -> None:
        self._known: dict[str, dict[str, bytes]] = {}
        self._rows: dict[tuple[str, str], AlarmRow] = {}

    def add(self, changed: AlarmsChanged) -> None:
        """Take the alarms that a group reports now; those that are not news cost nothing more."""
        group = changed.group
        before, known = self._known.get(group, {}), dict[str, bytes]()
        for found, incident in with_incidents(changed.believed, changed.rates):
            alarm = found.alarm
            if alarm.is_open and not alarm.verdict:
                continue
            known[alarm.name] = alarm.revision
            if before.get(alarm.name) != alarm.revision:
                view = msgspec.json.encode(view_of(group, found, None, incident))
                at = alarm.ended or alarm.began
                self._rows[group, alarm.name] = AlarmRow(group, alarm.name, at, view)
        self._known[group] = known

    def taken(self) -> list[AlarmRow]:
        """Return what has come since this was called last."""
        rows, self._rows = self._rows, {}
        return list(rows.values())

    def forget(self) -> None:
        """Take every alarm that is reported again as news: a write has failed."""
        self._known.clear()


WRITE_S = 300.0  # between two writes; a question writes at once, so that who looks sees the newest

VERSION_S = 300.0
"""Between two versions that are kept: a root may make a model twice a minute, for years."""

AGAIN_S = 60.0  # after a failure, the file is left alone for so long

MOST_WAITING, MANY = 10_000, 2_500
"""Entries that wait for the thread; with so many it begins, whether a write is due or not."""

MOST_ASKED = 64  # questions that wait for the thread

MOST_HOURS = 8192
"""Hours of nodes that wait for the disk, some 250 bytes each; with more they are written."""

PATIENCE_S = 5.0  # at the end, the longest wait for the disk

OUT_OF_REACH = frozenset(
    # They say nothing about the file's contents, and may be over soon.
    {
        *(sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_CANTOPEN),
        *(sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED, sqlite3.SQLITE_NOMEM),
    }
)

Entry = TrailHeard | ModelHeard | AlarmsChanged
T = TypeVar("T")


class HistoryUnavailable(SubmergeError):
    """No history is kept, or it cannot be read now."""


class HistoryRecorder:
    """The history of one aggregator; without a path none is kept."""

    def __init__(self, path: Path | None, max_bytes: int = 0) -> None:
        self._path, self._max_bytes = path, max_bytes
        self.dropped = self.bytes = 0
        self._waiting: deque[Entry] = deque()
        self._asked: deque[tuple[Callable[[HistoryFile], Any], Future[Any]]] = deque()
        self._changed = threading.Condition()
        self._closing = False
        self._thread: threading.Thread | None = None
        # From here on for the thread alone.
        self._file: HistoryFile | None = None
        self._failed_at = -AGAIN_S
        self._failing = False
        self._write_at = 0.0
        self._hours: dict[LevelsKey, bytes] = {}
        self._versions: list[VersionRow] = []
        self._models: dict[str, Model] = {}
        self._alarms = AlarmRows()

    @property
    def is_kept(self) -> bool:
        return self._path is not None

    def take(self, entry: Entry) -> None:
        if self._path is None:
            return
        with self._changed:
            if self._closing or len(self._waiting) >= MOST_WAITING:
                self.dropped += 1
                return
            self._waiting.append(entry)
            # No sooner: a thread that wakes takes turns with the one that commits.
            if self._thread is None or len(self._waiting) == MANY:
                self._stir()

    def ask(self, question: Callable[[HistoryFile], T]) -> Future[T]:
        """Have the thread answer a question from the file; or `HistoryUnavailable`."""
        reply: Future[T] = Future()
        with self._changed:
            if self._path is None:
                reply.set_exception(HistoryUnavailable("no history is kept here"))
            elif self._closing or len(self._asked) >= MOST_ASKED:
                reply.set_exception(HistoryUnavailable("the history is asked too much at once"))
            else:
                self._asked.append((question, reply))
                self._stir()
                if self._thread is None:
                    self._asked.pop()
                    reply.set_exception(
                        HistoryUnavailable("the history has no thread: see the log")
                    )
        return reply

    def close(self) -> None:
        """Write what waits, and close the file."""
        with self._changed:
            self._closing = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(PATIENCE_S)

    def _stir(self) -> None:
        if self._thread is None:
            thread = threading.Thread(target=self._work, name="history", daemon=True)
            try:
                thread.start()
            except RuntimeError as error:  # the system has no more threads; perhaps later
                self._complain(error)
                return
            self._thread = thread
        self._changed.notify()

    def _work(self) -> None:
        while True:
            with self._changed:
                while not (len(self._waiting) >= MANY or self._asked or self._closing):
                    left = self._write_at - monotonic()
                    if left <= 0.0 or not self._changed.wait(left):
                        break
                entries, asked = list(self._waiting), list(self._asked)
                self._waiting.clear()
                self._asked.clear()
                ends = self._closing
            for entry in entries:
                try:
                    self._gather(entry)
                except Exception as error:  # a bug costs an entry, and not the thread
                    self.dropped += 1
                    self._complain(error)
            if asked or ends or len(self._hours) > MOST_HOURS or monotonic() >= self._write_at:
                self._write()
            for question, reply in asked:
                self._answer(question, reply)
            if ends:
                break
        if self._file is not None:
            self._file.close()

    def _gather(self, entry: Entry) -> None:
        match entry:
            case TrailHeard(group, node, first, levels):
                for hour, part in hours_of(first, levels):
                    key = LevelsKey(hour, group, node)
                    known = self._hours.get(key)
                    self._hours[key] = part if known is None else higher(known, part)
            case ModelHeard(model, ranks):
                before = self._models.get(model.group)
                if before is None or abs(model.created - before.created) >= VERSION_S:
                    self._models[model.group] = model
                    self._versions.append(version_row(model, before, ranks))
            case AlarmsChanged():
                self._alarms.add(entry)

    def _write(self) -> None:
        """Write what was gathered; what cannot be written is dropped."""
        self._write_at = monotonic() + WRITE_S
        hours, self._hours = self._hours, {}
        versions, self._versions = self._versions, []
        alarms = self._alarms.taken()
        if not (hours or versions or alarms or self._file is None):
            return
        try:
            file = self._opened()
            file.put_levels(hours)
            file.put_alarms(alarms)
            file.put_versions(versions)
            self.bytes = file.size_bytes
            if self._failing and (hours or versions or alarms):
                self._failing = False
                say("history written again", dropped=self.dropped)
        except Exception as error:  # of the disk, or a bug: it costs entries, and not the thread
            self.dropped += len(hours) + len(versions) + len(alarms)
            self._fail(error)

    def _answer(self, question: Callable[[HistoryFile], Any], reply: Future[Any]) -> None:
        if not reply.set_running_or_notify_cancel():
            return  # who asked has hung up
        try:
            reply.set_result(question(self._opened()))
        except (sqlite3.Error, OSError) as error:
            self._fail(error)
            reply.set_exception(HistoryUnavailable(f"the history cannot be read: {error}"))
        except Exception as error:  # it is for the one who asked; bugs are, too
            reply.set_exception(error)

    def _opened(self) -> HistoryFile:
        """Return the file, open; another one where it is gone, or damaged."""
        if self._path is None:
            raise HistoryUnavailable("no history is kept here")
        if self._file is not None and not self._file.is_there:
            self._close()
            say("history is gone, another one begins", level="warning", path=str(self._path))
        if self._file is None:
            if monotonic() < self._failed_at + AGAIN_S:
                raise HistoryUnavailable("the history cannot be used now: see the log")
            try:
                self._file = HistoryFile(self._path, self._max_bytes)
            except sqlite3.Error as error:
                self._remove(error)
                self._file = HistoryFile(self._path, self._max_bytes)
        return self._file

    def _fail(self, error: Exception) -> None:
        """Close the file: remove it if it is damaged, and else leave it alone for a while."""
        self._close()
        self._alarms.forget()
        try:
            if isinstance(error, HistoryUnavailable):
                return
            if not isinstance(error, sqlite3.Error):
                raise error
            self._remove(error)
        except Exception as why:
            self._failed_at = monotonic()
            self._complain(why)

    def _complain(self, why: Exception) -> None:
        """Say once that entries are dropped, until they are written again."""
        if not self._failing:
            self._failing = True
            say("history not written, entries are dropped", level="warning", why=str(why))

    def _remove(self, error: sqlite3.Error) -> None:
        """Remove a file that is damaged; raise the error again if it is not."""
        if self._path is None or primary_code(error) in OUT_OF_REACH:
            raise error
        for each in files_of(self._path):
            each.unlink(missing_ok=True)
        why = " ".join(str(error).split())
        say("history is damaged, another one begins", level="warning", why=why)

    def _close(self) -> None:
        file, self._file = self._file, None
        if file is not None:
            with suppress(sqlite3.Error):
                file.close()
