"""Ledger: an aggregator's rows of one group, and which of them a report may change.

One row for each (node, incarnation): the newest report, by `seq`. The model follows from the rows
alone (`pool`), so a message that is late, repeated or out of order changes nothing. A client's row
that gets no more reports is *sealed*: folded into the node's one sealed row, and its incarnation
closed. Changed records are in `changes` until the node keeps them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from submerge.aggregator.alarms.disputes import AlarmDisputes
from submerge.aggregator.rows.former_schemas import (
    FormerSchemas,
    is_old,
    sealed_of,
    with_known_sums,
)
from submerge.aggregator.rows.histories import Histories
from submerge.aggregator.rows.influence import InfluenceRule, NodeAges
from submerge.aggregator.rows.pool import CountedRows, Pool, Row, Sealed
from submerge.aggregator.rows.presence import (
    AHEAD_S,
    Presence,
    alarms_begun,
    brought_up,
    seen_from,
    time_of,
)
from submerge.aggregator.rows.refusals import RowVerdict, fit_earlier, fits, within_readings
from submerge.protocol.machine import Key, Now, Records
from submerge.protocol.messages import (
    Counts,
    EarlierSums,
    Incarnation,
    Left,
    Reason,
    Report,
    learnt_in,
    successor,
)
from submerge.protocol.report_bytes import digest
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Summaries, Summary
from submerge.robust.influence import InfluenceBound
from submerge.robust.outliers import Outlier
from submerge.schema import Schema
from submerge.stats.moments import Moments

RowName = tuple[str, Incarnation]


def rows_moved(
    report: Report,
    rows: Mapping[RowName, Row],
    live: Iterable[Incarnation],
    summaries: Summaries,
    family: str,
) -> Iterator[tuple[RowName, Row]]:
    """Yield the rows of the node's live incarnations whose readings are in `report`, as moved."""
    name = report.stamp.incarnation
    for each in live:
        row = rows[key := (report.stamp.node, each)]
        counts = row.report.counts
        if row.report.summary is None and successor(each, family) == name:
            moved = Counts(moved=counts.moved + counts.generated)
            # Without moments: they must not be of more readings than are counted.
            marked = replace(row.report, counts=moved, moments=None)
            # The report that it came as may come again.
            seen = row.digest or digest(row.report, summaries)
            yield key, replace(row, report=marked, digest=seen)


CLOSED, FENCES = 64, 8  # closed incarnations and fences that are remembered of a node
CLIENT_ROWS, AGGREGATOR_ROWS = 6, 4  # most live rows of a client, and of an aggregator


@dataclass(frozen=True, slots=True, eq=False)
class Membership:
    """What is remembered of a node beside its rows."""

    # closed incarnations, and the last seq of each
    closed: dict[Incarnation, int] = field(default_factory=dict)
    floor: int = 0  # incarnations created before it (ms) are closed as well
    # for an aggregator's incarnations, the fence of the process that reports for each
    fences: dict[Incarnation, bytes] = field(default_factory=dict)

    def closed_seq(self, incarnation: Incarnation) -> int | None:
        if incarnation in self.closed:
            return self.closed[incarnation]
        return 0 if incarnation.created_ms < self.floor else None

    def admits(
        self,
        incarnation: Incarnation,
        fence: bytes,
        past: Mapping[bytes, int],
        newest: tuple[bytes, int] | None,
    ) -> bool:
        """Return whether an aggregator's process may report for its store from now on.

        past : the earlier fences of the store, and the last seq under each
        newest : the fence and the seq of the newest report; None without one
        """
        # It may if no other process has reported since: the fence that is held is its own or an
        # earlier one, with no report after the store left it. A copy or backup cannot know that.
        held = self.fences.get(incarnation)
        if held is not None and held != fence and held not in past:
            return False
        return newest is None or newest[1] <= past.get(newest[0], newest[1])

    def with_closed(self, incarnation: Incarnation, seq: int) -> Membership:
        closed, floor = {**self.closed, incarnation: seq}, self.floor
        while len(closed) > CLOSED:
            # Never the one just closed: its last message may arrive again.
            oldest = min(name for name in closed if name != incarnation)
            del closed[oldest]
            floor = max(floor, oldest.created_ms + 1)
        return replace(self, closed=closed, floor=floor, fences=self._fences_of_others(incarnation))

    def with_fence(
        self, incarnation: Incarnation, fence: bytes, live: Container[Incarnation]
    ) -> Membership:
        """Return it with another fence for an incarnation; `live`: those that have a row."""
        fences = self._fences_of_others(incarnation)
        spare = [name for name in fences if name not in live]
        for name in spare[: max(0, len(spare) + 1 - FENCES)]:
            del fences[name]
        return replace(self, fences={**fences, incarnation: fence})

    def _fences_of_others(self, incarnation: Incarnation) -> dict[Incarnation, bytes]:
        return {name: fence for name, fence in self.fences.items() if name != incarnation}


class Ledger:
    """The rows of one group.

    schema : Rows of another one are kept; whether they count, `FormerSchemas` says.
    created : Wall time that rows are first faded to: the creation of the store.
    learns_scaling : Whether a schema without scaling is still open: then nothing is merged.
    changes : Records to keep, None to delete.
    read : Those of them whose rows count, by fingerprint.
    """

    def __init__(
        self,
        group: str,
        schema: Schema,
        summaries: Summaries,
        settings: AggregatorSettings,
        *,
        created: float,
        robust: bool = False,
        rule: InfluenceRule | None = None,
        histories: Histories | None = None,
        learns_scaling: bool = False,
        flow: tuple[tuple[str, ...], ...] = (),
    ) -> None:
        self.group, self._learns_scaling, self.flow = group, learns_scaling, flow
        self.histories = Histories(group) if histories is None else histories
        self.changes: dict[Key, Any] = {}
        self.rows: dict[tuple[str, Incarnation], Row] = {}
        self.sealed: dict[tuple[str, str], Sealed] = {}
        self._members: dict[str, Membership] = {}
        self.presence, self.disputes = Presence(settings.report_every_s), AlarmDisputes()
        self._summaries, self._settings = summaries, settings
        self.ages = NodeAges(group, created, self.changes)
        self.former, self.read = FormerSchemas(group, self.changes), dict[str, Schema]()
        self._new_pool = partial(
            Pool, age=self.ages.age, robust=robust, rule=rule, histories=self.histories
        )
        self._pool = self._new_pool(schema, summaries, created)
        self._quarantined = self._for_good = frozenset[str]()
        self._left = 0

    def leave_out(self, nodes: frozenset[str], tried: frozenset[str] = frozenset()) -> None:
        """Keep the rows of exactly these nodes out of all that follows; `tried`: for a trial."""
        known = {node for node, _ in (*self.rows, *self.sealed)}
        self._leave(len((self._for_good ^ nodes) & known))
        self._for_good, out = nodes, nodes | tried
        changed, self._quarantined = self._quarantined ^ out, out
        for node in changed:
            self._refresh(node)

    def load(self, records: Records, now: Now) -> None:
        for key, record in records.items():
            match key:
                case ("row", self.group, node, created, nonce):
                    self.rows[node, Incarnation(int(created), int(nonce))] = record
                case ("sealed", self.group, node, fingerprint):
                    self.sealed[node, fingerprint] = record
                case ("member", self.group, node):
                    self._members[node] = record
                case ("reference", self.group):
                    self._pool.reference = record
                case ("left", self.group):
                    self._left = record
        self.former.load(records)
        self._renew_pool(self.schema)
        self.ages.load(records, {node for node, _ in (*self.rows, *self.sealed)}, now)
        self.presence.load({key: row.as_of for key, row in self.rows.items()}, now)
        # Not before the rows are loaded: without a synchronized clock they give the time.
        self._wall(now)
        self._refill()

    def change_schema(self, schema: Schema, *, left: Schema | None = None) -> None:
        """Go over to another schema: rows of the old one are read as of it, or leave the model."""
        left, reports = left or self.schema, (row.report for row in self.rows.values())
        used = {fingerprint for each in reports for fingerprint, _ in learnt_in(each)}
        used |= {place[1] for place, each in self.sealed.items() if each.summary is not None}
        learns = not self._learns_scaling or left.scaling is not None
        self.former.leave(left, used=used, learns=learns)
        self._renew_pool(schema)
        self._refill()

    def _renew_pool(self, schema: Schema) -> None:
        before, self.read = self._pool, self.former.read_as(schema)
        earlier = {} if self._learns_scaling and schema.scaling is None else self.read
        self._pool = self._new_pool(schema, self._summaries, before.reference, earlier=earlier)
        self._pool.latest, self._pool.now = before.latest, before.now

    def accept(self, report: Report, now: Now) -> RowVerdict:
        """Judge a report that is pinned to this store, and take it if it is new."""
        node, incarnation, seq = report.stamp.node, report.stamp.incarnation, report.stamp.seq
        row = self.rows.get(key := (node, incarnation))
        held = 0 if row is None else row.report.stamp.seq
        self._wall(now)
        if (refusal := self._refusal(report, row)) is not None:
            return refusal
        self.ages.hear(node)
        # The same report again says nothing of the node: a broker keeps it for months.
        if seq > held:
            self._put_row(report, now)
            known = self.rows, self.live(node), self._summaries, self.schema.family
            for each, older in rows_moved(report, *known):
                self.rows[each] = self.changes[self._key(*each)] = older
            self._make_room(node, incarnation)
        # `_make_room` may have raised the floor above it, and sealed it.
        if report.final and key in self.rows:
            for each, older in brought_up(self.rows, self.presence, key, now, self._summaries):
                self.rows[each] = self.changes[self._key(*each)] = older
            self.seal(node, incarnation)
        self._refresh(node)
        return RowVerdict(Reason.ACK, max(seq, held), news=seq > held)

    def admit(
        self, node: str, incarnation: Incarnation, fence: bytes, past: tuple[Left, ...]
    ) -> bool:
        """Let an aggregator's process report for its store from now on, if it may."""
        member, row = self.member(node), self.rows.get((node, incarnation))
        newest = None if row is None else (row.report.fence, row.report.stamp.seq)
        if not member.admits(incarnation, fence, dict(past), newest):
            return False
        if member.fences.get(incarnation) != fence:
            self._put_member(node, member.with_fence(incarnation, fence, self.live(node)))
        return True

    def _refusal(self, report: Report, row: Row | None) -> RowVerdict | None:
        """Return the answer to a report that changes nothing; None if it may change its row."""
        stamp = report.stamp
        held = 0 if row is None else row.report.stamp.seq
        over = self.member(stamp.node).closed_seq(stamp.incarnation)
        if over is not None:
            # Late: it is folded in. But two processes of one store number their reports alike.
            known = stamp.seq <= over and not report.fence
            return RowVerdict(Reason.ACK if known else Reason.STALE, over)
        schema = self.schema_of(report.fingerprint)
        # A client keeps the last report of an incarnation, while the group may get another schema.
        if schema is None or (schema is not self.schema and not report.final):
            return RowVerdict(Reason.SCHEMA, held)
        if self.member(stamp.node).fences.get(stamp.incarnation, b"") != report.fence:
            return RowVerdict(Reason.FENCED, held)
        earlier_fit = fit_earlier(report, self.schema_of, self._summaries)
        if not (earlier_fit and fits(report, schema, self._summaries)):
            return RowVerdict(Reason.INVALID, held)
        if row is None:
            return None
        if stamp.seq < held and not report.final:
            return RowVerdict(Reason.ACK, held)
        if stamp.seq == held and not row.came_as(report, self._summaries):
            return RowVerdict(Reason.EQUIVOCATION, held)
        shrunk = report.counts.learnt < row.report.counts.learnt
        if stamp.seq > held and row.from_client and shrunk:
            return RowVerdict(Reason.SHRUNK, held)
        return None

    def forget(self, node: str, now: Now) -> None:
        """Remove a node: the model is as if the node had never reported."""
        for incarnation in (*self.live(node), None):
            self.drop(node, incarnation, now)
        self.ages.forget(node)

    def drop(self, node: str, incarnation: Incarnation | None, now: Now) -> None:
        """Remove one incarnation, and close it; None: the sealed row of closed ones."""
        self._wall(now)
        self._leave(1)
        if incarnation is None:
            self._drop_sealed(node)
        elif (node, incarnation) in self.rows:
            self.close(node, incarnation, self._delete_row(node, incarnation).report.stamp.seq)
        self._refresh(node)

    def drop_old(self, node: str, now: Now) -> None:
        """Remove a node's rows of earlier schemas that are in no model."""
        for incarnation in self.live(node):
            if is_old(self.rows[node, incarnation].report, self.schema_of):
                self.drop(node, incarnation, now)
        self._drop_sealed(node, lambda fingerprint: self.schema_of(fingerprint) is None)

    def tidy(self, now: Now) -> None:
        """Seal silent rows; move the reference time if it is far away."""
        self._take_time(now)
        self.ages.keep(now)
        for node in self.presence.nodes:
            silences = {i: self.presence.silence(node, i, now.steady) for i in self.live(node)}
            for incarnation, silence in silences.items():
                row = self.rows.get((node, incarnation))
                # Sealing one may have sealed others below its floor.
                if row and row.from_client and silence > self._settings.seal_after_s:
                    self.seal(node, incarnation)
                    self._refresh(node)

    @property
    def left(self) -> int:
        """How often rows have left the sums, here and at aggregators below; it never falls."""
        below = (row.report.left for row in self.rows.values() if not row.from_client)
        return self._left + sum(below)

    def _leave(self, times: int) -> None:
        if times and self.schema.clip is not None:
            self._left = self.changes["left", self.group] = self._left + times

    @property
    def schema(self) -> Schema:
        return self._pool.schema

    @property
    def fingerprint(self) -> str:
        return self._pool.fingerprint

    def schema_of(self, fingerprint: str) -> Schema | None:
        """Return the schema of rows that count; None if rows of it do not."""
        return self.schema if fingerprint == self.fingerprint else self.read.get(fingerprint)

    def member(self, node: str) -> Membership:
        """Return the membership of a node; an empty one if nothing is remembered."""
        return self._members.get(node) or Membership()

    def live(self, node: str) -> tuple[Incarnation, ...]:
        return self.presence.live(node)

    def knows(self, node: str) -> bool:
        return node in self.presence or node in self._members

    def began(self, node: str, now: Now) -> float:
        """Return since when a node may have read what it reports, wall time."""
        created = (each.created_ms / 1000 for each in self.live(node))
        return min(now.wall - self.ages.age(node), *created)

    def outliers(self) -> Mapping[str, Outlier]:
        """Return the clients that are left out for as long as they are far from the others."""
        return self._pool.outliers()

    def bounds(self) -> Mapping[str, InfluenceBound]:
        """Return the nodes that count for less than they have reported, as of the last event."""
        return self._pool.bounds()

    def current(self) -> Iterator[Row]:
        """Return the rows of this schema that count, one by one."""
        return self.counted.current()

    def counts(self) -> Counts:
        """Add up the readings of all rows of this schema."""
        return self.counted.counts()

    def moments(self) -> Moments | None:
        """Pool the moments of all rows; None if they send summaries."""
        return self.counted.moments()

    def seen(self, now: Now) -> Summary | None:
        """Merge all rows as of now: same rows and time give the same bytes, restarted or not."""
        self._take_time(now)
        return self.summary(seen_from(now, self.rows.values()))

    def with_energies(self, seen: Summary, *, even: bool, had: bool) -> Summary:
        return self._pool.with_energies(seen, even=even, had=had)

    def waiting(self) -> Pool | None:
        return self._pool.waiting()

    def earlier_sums(self, now: Now) -> EarlierSums | None:
        """Return the sums of all rows that wait for the present schema; None if none do."""
        pool = self.waiting()
        summary = None if pool is None else pool.summary(seen_from(now, self.rows.values()))
        if pool is None or summary is None:
            return None
        summary = pool.with_energies(summary, even=True)
        out = self.left_out | pool.outliers().keys()
        # None of them is the present one: what was only measured does not count.
        schemas = {pool.fingerprint, *pool.earlier}
        counts = CountedRows(self.rows, self.sealed, "", schemas, out).counts()
        bounded = within_readings(self._summaries, summary, counts.learnt)
        return None if bounded is None else EarlierSums(pool.fingerprint, bounded, counts)

    def summary(self, wall: float | None = None) -> Summary | None:
        return self._pool.summary(wall)

    def seal(self, node: str, incarnation: Incarnation) -> None:
        """Fold a row into the node's sealed one, and close its incarnation."""
        row = self._delete_row(node, incarnation)
        for fingerprint, new in sealed_of(row):
            if (old := self.sealed.get(place := (node, fingerprint))) is not None:
                new = self._pool.fold(old, new, own=row.from_client)
            self.sealed[place] = self.changes["sealed", self.group, *place] = new
        self.close(node, incarnation, row.report.stamp.seq)

    def close(self, node: str, incarnation: Incarnation, seq: int) -> None:
        """Close an incarnation: its reports change nothing any more."""
        member = self.member(node).with_closed(incarnation, seq)
        self._put_member(node, member)
        # Incarnations that were created below the floor count as closed.
        below = [other for other in self.live(node) if other.created_ms < member.floor]
        if below:
            self.seal(node, below[0])  # closes it, and checks again

    def _put_row(self, report: Report, now: Now) -> None:
        key = (node := report.stamp.node), report.stamp.incarnation
        as_of = time_of(report, now, self._settings.max_age_s)
        held = [self.rows[node, each].report for each in self.live(node)]
        begun = with_known_sums(alarms_begun(report, held, now), self.schema_of)
        # Alarms of the future have other times when the same report comes again.
        row = Row(begun, b"" if begun is report else digest(report, self._summaries), as_of)
        self.rows[key] = self.changes[self._key(*key)] = row
        self.presence.hear(*key, now.steady)
        if row.from_client and not report.final:
            self.presence.turns.take(*key, now.steady)

    def _make_room(self, node: str, spared: Incarnation) -> None:
        """Seal the longest silent rows of a node that has too many."""
        most = CLIENT_ROWS if self.rows[node, spared].from_client else AGGREGATOR_ROWS
        while len(self.live(node)) > most:
            self.seal(node, self.presence.longest_silent(node, spared))

    def _delete_row(self, node: str, incarnation: Incarnation) -> Row:
        self.changes[self._key(node, incarnation)] = None
        self.presence.end(node, incarnation)
        row = self.rows.pop((node, incarnation))
        self._leave(0 if row.from_client else row.report.left)
        return row

    def _drop_sealed(self, node: str, drops: Callable[[str], bool] = lambda _: True) -> None:
        for name, fingerprint in list(self.sealed):
            if name == node and drops(fingerprint):
                del self.sealed[name, fingerprint]
                self.changes["sealed", self.group, node, fingerprint] = None

    def _put_member(self, node: str, member: Membership) -> None:
        self._members[node] = self.changes["member", self.group, node] = member

    def _take_time(self, now: Now) -> None:
        """Take the time as of which rows are read; they keep their own, as a clock may be wrong."""
        self._wall(now)
        if self._pool.out_of_reach(now.wall) and now.synced:
            self._pool.reference = self.changes["reference", self.group] = now.wall
            self._refill()

    def _wall(self, now: Now) -> None:
        """Believe no row from the future, by our clock, or without one by the median row."""
        self.ages.advance(now)
        self._pool.now = self.ages.elapsed, now.wall if now.synced else math.nan
        if now.synced:
            self._pool.latest = now.wall + AHEAD_S
        elif self.schema.half_life:
            self._pool.latest = seen_from(now, self.rows.values())

    def _refresh(self, node: str) -> None:
        """Compute again what a node's rows add up to."""
        if node in self._quarantined:
            self._pool.put(node, (), {})
            return
        rows = [self.rows[node, i] for i in sorted(self.live(node))]
        prints = (self.fingerprint, *self._pool.earlier)
        sealed = {each: held for each in prints if (held := self.sealed.get((node, each)))}
        self._pool.put(node, rows, sealed)

    @property
    def left_out(self) -> frozenset[str]:
        """Nodes whose rows do not count: quarantined, or outliers."""
        return self._quarantined | self._pool.outliers().keys()

    def _refill(self) -> None:
        for node in {node for node, _ in self.rows} | {node for node, _ in self.sealed}:
            self._refresh(node)

    @property
    def counted(self) -> CountedRows:
        prints = self.fingerprint, self.read.keys()
        return CountedRows(self.rows, self.sealed, *prints, self.left_out)

    def _key(self, node: str, incarnation: Incarnation) -> Key:
        return "row", self.group, node, str(incarnation.created_ms), str(incarnation.nonce)
