"""HistoryFile: the history on disk: rings of rows in one SQLite database (docs/decisions/0049).

For one thread; the store's lock keeps other processes away.
"""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.aggregator.rollup import latest_row_per_node
from submerge.aggregator.rows.presence import time_of
from submerge.protocol.machine import Effect, Event, Now, Publish, Received, Send
from submerge.protocol.messages import Answer, Model, Reason, Report
from submerge.protocol.score_trail import MINUTE_S
from submerge_aggregator.store import Database
from submerge_client.files import create_private, is_same, refuse_link, stat_of

# What it returns goes out with the batch, so after the commit: a batch that is taken back leaves
# nothing.

MOST_RANKS = 5  # nodes whose own ranks a version has

PAST_MINUTES, AHEAD_MINUTES = 120, 1
"""A trail may write so far back, and ahead, from now: whatever a node's clock says."""


class TrailHeard(NamedTuple):
    group: str
    node: str
    first: int
    levels: bytes


class ModelHeard(NamedTuple):
    """A model that the group uses from now on."""

    model: Model
    ranks: Mapping[str, int] = {}  # as in `VersionView`


def entries_of(
    node: AggregatorNode, event: Event, effect: Effect, now: Now
) -> list[TrailHeard | ModelHeard]:
    """Return what an effect of the machine has for the history."""
    if isinstance(effect, Publish):
        message = effect.message
        if isinstance(message, Model) and _learnt(message):
            return [ModelHeard(message, own_ranks(node, message.group))]
        return []
    report = event.message if isinstance(event, Received) else None
    if not (isinstance(effect, Send) and isinstance(report, Report) and not report.fence):
        return []
    answer = effect.message
    if not isinstance(answer, Answer) or answer.reason is not Reason.ACK:
        return []
    heard = heard_of(report, _believed(node, report, now), now)
    return [] if heard is None else [heard]


def models_of(node: AggregatorNode) -> list[ModelHeard]:
    models = (node.model(group) for group in node.groups)
    return [ModelHeard(model) for model in models if model is not None and _learnt(model)]


def own_ranks(node: AggregatorNode, group: str) -> Mapping[str, int]:
    """Return ranks that nodes have chosen by a rule of their own, as `VersionView` has them."""
    ledger = node.ledger(group)
    rows = () if ledger is None else latest_row_per_node(ledger)
    ranks = {name: row.report.method.rank for (name, _), row in rows if row.report.method.rank}
    if len(ranks) <= MOST_RANKS:
        return ranks
    values = sorted(ranks.values())
    return {"least": values[0], "median": values[len(values) // 2], "most": values[-1]}


def heard_of(report: Report, as_of: float, now: Now) -> TrailHeard | None:
    """Return a report's trail by our clock, without minutes that are not near now."""
    trail = report.trail
    # Whole minutes: a trail's are cut already, and the reports of a node shift alike.
    shift = round((as_of - report.as_of) / MINUTE_S)
    present = int(now.wall // MINUTE_S)
    last = trail.last + shift
    first = last - len(trail.levels) + 1
    begin = max(0, present - PAST_MINUTES - first)
    end = min(len(trail.levels), present + AHEAD_MINUTES - first + 1)
    if begin >= end:
        return None
    levels = trail.levels[begin:end]
    return TrailHeard(report.stamp.group, report.stamp.node, first + begin, levels)


def _learnt(model: Model) -> bool:
    """Return whether a model holds readings: the first ones only bring a schema down."""
    return model.counts.learnt > 0


def _believed(node: AggregatorNode, report: Report, now: Now) -> float:
    """Return when a report is as of: a report that comes again, as it was when it came first."""
    stamp = report.stamp
    ledger = node.ledger(stamp.group)
    row = None if ledger is None else ledger.rows.get((stamp.node, stamp.incarnation))
    if row is not None and row.report.stamp == stamp:
        return row.as_of
    return time_of(report, now, node.settings.max_age_s)


FORM = 1  # raise it when tables change: a history of another form is not read, a new one begins

APPLICATION_ID = int.from_bytes(b"sub5", "big")

PAGE_BYTES = 4096

CACHE_KIB = 256

CREATE = """
CREATE TABLE levels (
    hour INTEGER NOT NULL, grp TEXT NOT NULL, node TEXT NOT NULL, levels BLOB NOT NULL,
    PRIMARY KEY (hour, grp, node)
) WITHOUT ROWID;
CREATE TABLE alarms (
    grp TEXT NOT NULL, id TEXT NOT NULL, at REAL NOT NULL, view BLOB NOT NULL,
    PRIMARY KEY (grp, id)
) WITHOUT ROWID;
CREATE INDEX newest_alarms ON alarms (grp, at);
CREATE TABLE versions (
    grp TEXT NOT NULL, created REAL NOT NULL, version INTEGER NOT NULL, view BLOB NOT NULL,
    PRIMARY KEY (grp, created, version)
) WITHOUT ROWID;
"""

# One step down the tree for each hour; DISTINCT would read all rows.
KNOWN_HOURS = """
WITH RECURSIVE known (hour) AS (
    SELECT min(hour) FROM levels WHERE hour >= :start
    UNION ALL
    SELECT (SELECT min(hour) FROM levels WHERE hour > known.hour) FROM known WHERE hour < :stop
)
SELECT hour FROM known WHERE hour < :stop
"""


OF_NODE = "SELECT node, levels FROM levels WHERE hour = ? AND grp = ? AND node = ? LIMIT ?"
OF_NODES = (
    "SELECT node, levels FROM levels WHERE hour = ? AND grp = ? AND node > ? ORDER BY node LIMIT ?"
)


class Ring(NamedTuple):
    """A table with a share of the bytes: one part in `part`."""

    part: int
    size: str  # selects its bytes, names and index too, and its rows
    delete: str  # deletes so many rows, the oldest


ALARMS = Ring(
    8,
    "SELECT total(length(view) + 150), count(*) FROM alarms",
    "DELETE FROM alarms WHERE at <= (SELECT at FROM alarms ORDER BY at LIMIT 1 OFFSET ?)",
)
VERSIONS = Ring(
    16,
    "SELECT total(length(view) + 150), count(*) FROM versions",
    "DELETE FROM versions"
    " WHERE created <= (SELECT created FROM versions ORDER BY created LIMIT 1 OFFSET ?)",
)


class LevelsKey(NamedTuple):
    """Names an hour of a node."""

    hour: int
    group: str
    node: str


class AlarmRow(NamedTuple):
    group: str
    id: str
    at: float  # when it ended, or began if it is open; alarms are in this order
    view: bytes  # its AlarmView, as JSON


class VersionRow(NamedTuple):
    """A version of a model as it is kept; `view` is its VersionView, as JSON."""

    group: str
    created: float
    version: int
    view: bytes


class HistoryFile(Database):
    """The history in a file, which is created if it is missing."""

    def __init__(self, path: Path, max_bytes: int) -> None:
        self.path, self._max_bytes = path, max_bytes
        self._most_pages = max_bytes * 3 // 4 // PAGE_BYTES
        self._present: int | None = None
        for each in files_of(path):
            refuse_link(each, what="the history")
        if not path.exists():
            # A log would be taken for that of the new database.
            for each in files_of(path):
                each.unlink(missing_ok=True)
        create_private(path)
        self._stat = stat_of(path)
        self._sql = sqlite3.connect(path, timeout=0, isolation_level=None, check_same_thread=False)
        try:
            self._open()
        except BaseException:
            self._sql.close()
            raise

    @property
    def size_bytes(self) -> int:
        """Bytes on disk, with the log."""
        total = 0
        for each in files_of(self.path):
            with suppress(OSError):
                total += os.stat(each).st_size
        return total

    @property
    def is_there(self) -> bool:
        return is_same(self._stat, stat_of(self.path))

    @property
    def at_once(self) -> int:
        """Rows of one transaction: each may change two pages, and the log has little room."""
        return max(16, self._max_bytes // 16 // PAGE_BYTES)

    def close(self) -> None:
        """Write the log into the database, and close it."""
        self._sql.close()

    def put_levels(self, hours: Mapping[LevelsKey, bytes]) -> None:
        """Take over levels of hours: of each minute the higher level stays."""
        keys = sorted(hours)
        # Trails are near now: it is the hour by our clock, or the next one.
        self._present = max((key.hour for key in keys), default=self._present)
        for at in range(0, len(keys), self.at_once):
            with self._transaction():
                for key in keys[at : at + self.at_once]:
                    self._put_hour(key, hours[key])
            self._bound()

    def _put_hour(self, key: LevelsKey, levels: bytes) -> None:
        found = self._sql.execute(
            "SELECT levels FROM levels WHERE hour = ? AND grp = ? AND node = ?", key
        ).fetchone()
        if found is not None:
            levels = higher(found[0], levels)
            if levels == found[0]:
                return
        self._sql.execute("REPLACE INTO levels VALUES (?, ?, ?, ?)", (*key, levels))

    def put_alarms(self, alarms: Sequence[AlarmRow]) -> None:
        at_once = max(1, self.at_once // 8)  # a view may take several pages
        for at in range(0, len(alarms), at_once):
            with self._transaction():
                self._sql.executemany(
                    "REPLACE INTO alarms VALUES (?, ?, ?, ?)", alarms[at : at + at_once]
                )
            self._shorten(ALARMS)
            self._bound()

    def put_versions(self, versions: Sequence[VersionRow]) -> None:
        """Take over versions of models; one that is known stays as it is."""
        with self._transaction():
            self._sql.executemany("INSERT OR IGNORE INTO versions VALUES (?, ?, ?, ?)", versions)
        self._shorten(VERSIONS)
        self._bound()

    def levels(
        self, group: str, hours: range, *, node: str = "", after: str = "", most: int
    ) -> dict[str, dict[int, bytes]]:
        """Return the known hours of the first nodes that follow after a name, by their names."""
        found: dict[str, dict[int, bytes]] = {}
        span = {"start": hours.start, "stop": hours.stop}
        known = self._sql.execute(KNOWN_HOURS, span).fetchall()
        select, name = (OF_NODE, node) if node else (OF_NODES, after)
        for (hour,) in known:
            for each, levels in self._sql.execute(select, (hour, group, name, most)):
                found.setdefault(each, {})[hour] = levels
        return {name: found[name] for name in sorted(found)[:most]}

    def alarms(self, group: str, before: float, most: int, *, after: str = "") -> list[AlarmRow]:
        """Return the newest alarms before a time, and of that time itself those after an id."""
        rows = self._sql.execute(
            "SELECT grp, id, at, view FROM alarms WHERE grp = ?"
            " AND (at < ? OR (at = ? AND ? < id AND ? != '')) ORDER BY at DESC, id LIMIT ?",
            (group, before, before, after, after, most),
        )
        return [AlarmRow(*row) for row in rows]

    def versions(self, group: str, most: int) -> list[VersionRow]:
        """Return the newest versions, the newest first."""
        rows = self._sql.execute(
            "SELECT grp, created, version, view FROM versions WHERE grp = ?"
            " ORDER BY created DESC, version DESC LIMIT ?",
            (group, most),
        )
        return [VersionRow(*row) for row in rows]

    def _bound(self) -> None:
        """Forget the oldest hours while there are too many pages, and empty a long log."""
        while self._number("page_count") - self._number("freelist_count") > self._most_pages * 0.9:
            oldest, newest = self._sql.execute("SELECT min(hour), max(hour) FROM levels").fetchone()
            if oldest is None:
                break
            # Hours to come were written while our clock was ahead.
            ahead = self._present is not None and newest > self._present + 1
            with self._transaction():
                forgotten = newest if ahead else oldest
                self._sql.execute("DELETE FROM levels WHERE hour = ?", (forgotten,))
        with suppress(OSError):
            if os.stat(f"{self.path}-wal").st_size > self._max_bytes // 8:
                self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def _shorten(self, ring: Ring) -> None:
        """Forget a tenth of a ring, the oldest, where it takes too many bytes."""
        size, rows = self._sql.execute(ring.size).fetchone()
        if size > self._max_bytes // ring.part:
            with self._transaction():
                self._sql.execute(ring.delete, (rows // 10,))

    def _open(self) -> None:
        self._sql.execute("PRAGMA locking_mode = EXCLUSIVE")
        self._sql.execute("PRAGMA trusted_schema = OFF")
        self._sql.execute(f"PRAGMA page_size = {PAGE_BYTES}")
        self._sql.execute(f"PRAGMA cache_size = -{CACHE_KIB}")
        self._sql.execute("PRAGMA temp_store = MEMORY")
        self._sql.execute("PRAGMA auto_vacuum = INCREMENTAL")
        if not self._sql.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]:
            self._sql.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            self._sql.execute(f"PRAGMA user_version = {FORM}")
            self._sql.executescript(CREATE)
        form = self._number("application_id"), self._number("user_version")
        if form != (APPLICATION_ID, FORM):
            raise sqlite3.DatabaseError(f"expected form {FORM}, got {form[1]}")
        (verdict,) = self._sql.execute("PRAGMA quick_check(1)").fetchone()
        if verdict != "ok":
            raise sqlite3.DatabaseError(str(verdict).splitlines()[-1])
        self._sql.execute("PRAGMA journal_mode = WAL")
        self._sql.execute("PRAGMA synchronous = OFF")
        self._sql.execute(f"PRAGMA wal_autocheckpoint = {self._max_bytes // 16 // PAGE_BYTES}")
        self._bound()
        if self._number("page_count") > self._most_pages:  # it had more room before
            # A page a step: `execute` would make one step.
            self._sql.executescript("PRAGMA incremental_vacuum")
            self._sql.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        self._sql.execute(f"PRAGMA max_page_count = {self._most_pages}")


def files_of(path: Path) -> tuple[Path, ...]:
    """Return the files of a history: the database, its log, and what SQLite may leave beside."""
    return path, *(path.with_name(path.name + end) for end in ("-wal", "-shm", "-journal"))


HOUR = 60


def hours_of(first: int, levels: bytes) -> Iterator[tuple[int, bytes]]:
    """Yield the hours that consecutive minutes (Unix time / 60) touch, with 60 levels each."""
    at = 0
    while at < len(levels):
        hour, offset = divmod(first + at, HOUR)
        part = levels[at : at + HOUR - offset]
        yield hour, bytes(offset) + part + bytes(HOUR - offset - len(part))
        at += len(part)


def higher(one: bytes, other: bytes) -> bytes:
    """Return the higher of two levels, minute by minute."""
    return one if one == other else bytes(map(max, one, other))


def steps_of(hours: Mapping[int, bytes], first: int, step: int, count: int) -> bytes:
    """Return the highest level in each of `count` steps of `step` minutes from `first` on."""
    minutes = np.zeros(step * count, np.uint8)
    for hour, levels in hours.items():
        begin = hour * HOUR - first
        low, high = max(begin, 0), min(begin + HOUR, len(minutes))
        if low < high:
            minutes[low:high] = np.frombuffer(levels, np.uint8)[low - begin : high - begin]
    highest: np.ndarray = minutes.reshape(count, step).max(axis=1)
    return highest.tobytes()


@dataclass(frozen=True, slots=True)
class NodeLevels:
    """The levels of a node, a byte a step: `submerge.protocol.score_trail` says what they mean."""

    node: str
    levels: bytes


@dataclass(frozen=True, slots=True)
class ScoresPage:
    """How close the nodes that report to one aggregator came to alarms, over time."""

    aggregator: str
    group: str
    step_s: int  # Seconds of a step, a multiple of 60. Its level is the highest of its minutes.
    first_s: int  # when the first step begins, Unix seconds, a multiple of `step_s`
    nodes: list[NodeLevels]
    more: bool = False


@dataclass(frozen=True, slots=True)
class VersionView:
    version: int
    created_s: float
    rank: int
    nodes: int
    readings: int
    angle_deg: float | None  # largest, to the version before; None if not known
    spectrum: list[float]  # variance along each direction, the largest first, at most 32
    ranks: Mapping[str, int] = field(default_factory=dict)  # nodes' own; of many: least, most, ...
