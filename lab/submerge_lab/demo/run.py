"""One run of the demo: it feeds a room to real processes and evaluates their output. A node gets
nothing but its configuration and its readings. The results use nothing but what nodes write on
their pipes while they run, and what the root's store counts at the end.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from submerge import Array, Scaling, Schema
from submerge.aggregator.rows.pool import Row, Sealed
from submerge.features import Gaussian, RandomFourier
from submerge.protocol.messages import Counts
from submerge_aggregator.store import Store
from submerge_lab.demo.alarms import FaultVerdict, RaisedAlarm, match_faults
from submerge_lab.demo.failures import ProcessFailure, plan_failures
from submerge_lab.demo.feed import KNOCKS, Dealer, Trial
from submerge_lab.demo.fleet import PATIENCE_S, DemoFleet, FleetFailed, Usage
from submerge_lab.demo.scores import ChannelWatch
from submerge_lab.demo.site import FIRST_ROWS, ROOT, Site, SiteMember, Wire, check_sizes, members
from submerge_lab.plants.room import DAY, MOTES, SNAPSHOT_S, Room
from submerge_proto.kept import records

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SETTLE_DAYS = 4.0
"""Days without faults (2/7 of a shorter run): half to learn, half to measure limits."""

OVERSAMPLE = 10
"""Spare directions. A fault that comes late is small in its first blocks; with five to
spare it may be cut off before it has grown."""

OFFSET = (21.0, 33.0, 200.0, 2.7)
SCALE = (1.0, 3.0, 300.0, 0.04)
"""The fixed scaling, by quantity: about thirty times the noise of a sound sensor."""

GAMMA = 0.0016
"""The kernel's parameter: about 1 / (2 tr C) in the units of that scaling."""

ROUND = 48
"""Snapshots that are evaluated together: under half an hour."""

LATE_DAYS, SLOWER = 0.75, 8.0
"""While a client's model or its acknowledgements lag by more of the room's days, the room's clock
runs so much slower. On a busy machine, or with an aggregator down for seconds, days of weather
would otherwise pass that are in no model."""

ARMED = 7 / 8
"""Share of the time without faults that clients watch before they use alarm limits."""

SPARED, SPARED_RATE = 200, 40.0
"""Snapshots that are kept for a node that is not back yet, and their rate a second."""


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """Settings of a run.

    seconds : Duration of the run, once every client has scored a row; raising it gives the model
        more time to follow and loads the machine less.
    features : Kernel features; 0: the group is linear.
    """

    seed: int = 0
    days: float = 14.0
    clients: int = 8
    rank: int = 10
    seconds: float = 20.0
    features: int = 0

    @property
    def settle_days(self) -> float:
        """Days without faults, for learning and for measuring limits."""
        return min(SETTLE_DAYS, self.days * 2 / 7)


@dataclass(slots=True)
class DemoHistory:
    """The data of the picture: one entry for each round.

    spe, spe_worst : median and largest squared prediction error (SPE) of its rows; NaN if unknown
    multiple : (motes,) worst channel's residual over its limit, root mean square
    """

    snapshot: list[int] = field(default_factory=list)
    spe: list[float] = field(default_factory=list)
    spe_worst: list[float] = field(default_factory=list)
    multiple: list[Array] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """Results of a run.

    snapshots, values, gaps : Snapshots fed; values in all rows; those of them that were missing.
    rows_judged, rows_over_spe, rows_over_t2 : Rows scored after the settling time; those over the
        fleet's 99.9 % limit of SPE, of T2.
    anomalous_rows : In a kernel group, rows whose anomaly score is above 1.
    """

    settings: DemoSettings
    wire: str
    snapshots: int
    values: int
    gaps: int
    rows_judged: int
    rows_over_spe: int
    rows_over_t2: int
    raw_bytes: int
    counts: Counts
    failures: tuple[ProcessFailure, ...]
    usage: tuple[Usage, ...]
    verdicts: tuple[FaultVerdict, ...]
    alarms: tuple[RaisedAlarm, ...] = ()
    anomalous_rows: int = 0

    def count(self, outcome: str) -> int:
        """Return how many verdicts have this outcome: `found`, `missed` or `false`."""
        return sum(verdict.outcome == outcome for verdict in self.verdicts)

    @property
    def lost_with_kill(self) -> int:
        """Rows that went with a killed process, before it could report them."""
        return self.snapshots - self.counts.generated

    def of(self, role: str) -> list[Usage]:
        """Return the usage of all nodes of one role."""
        return [each for each in self.usage if each.role == role]

    def figures(self) -> dict[str, object]:
        """Return all figures for JSON."""
        counts = {"learnt": self.counts.learnt, "withheld": self.counts.withheld}
        return asdict(replace(self, failures=())) | {
            "settings": asdict(self.settings) | {"settle_days": self.settings.settle_days},
            "counts": counts | {"lost": self.counts.lost, "lost_with_kill": self.lost_with_kill},
            "failures": [failure.figures() for failure in self.failures],
            "found": self.count("found"),
            "missed": self.count("missed"),
            "false": self.count("false"),
            "alarms": [alarm.figures() for alarm in self.alarms],
            "verdicts": [verdict.figures() for verdict in self.verdicts],
        }


def site_of(settings: DemoSettings, room: Room, folder: Path, wire: Wire, **more: Any) -> Site:
    """Return the fleet's site."""
    # One mean: all clients read the same room.
    schema = Schema(room.channels, Scaling(OFFSET * MOTES, SCALE * MOTES), center="fleet")
    if settings.features:
        schema = replace(schema, features=RandomFourier(Gaussian(GAMMA), settings.features))
    site = Site(
        folder,
        wire,
        schema,
        settings.rank,
        OVERSAMPLE,
        # Clients take turns.
        row_s=settings.clients * SNAPSHOT_S,
        settle_s=ARMED * settings.settle_days * 86400,
        **more,
    )
    check_sizes(site)
    return site


def trial_of(settings: DemoSettings) -> Trial:
    """Return what clients get before they score."""
    return Trial(max(2, FIRST_ROWS // settings.clients), settings.clients / KNOCKS)


class Demo:
    """A run; `folder`: for the fleet's files: absolute, empty, existing."""

    fleet_type = DemoFleet

    def __init__(
        self, settings: DemoSettings, folder: Path, wire: Callable[[tuple[SiteMember, ...]], Wire]
    ) -> None:
        self.settings = settings
        self.room = Room(seed=settings.seed, days=settings.days, quiet_days=settings.settle_days)
        who = members(settings.clients)
        self.site = site_of(settings, self.room, folder, wire(who))
        self.schema = self.site.schema
        total = self.room.n_snapshots
        self.failures = plan_failures(who, total)
        self.fleet = self.fleet_type(self.site, who, self.failures)
        self.dealer = Dealer(total, trial_of(settings))
        self.watch = ChannelWatch(self.room.channels, settle=int(settings.settle_days * DAY))
        self.alarms = self.fleet.alarms
        self.history = DemoHistory()
        self.evaluated = 0
        self._gaps = 0
        self._scored, self._scored_at = -1, 0.0
        self._dealt = deque[tuple[float, int]]()  # snapshots, by wall time

    def run(self, show: Callable[[], None]) -> DemoOutcome:
        """Run the whole demo; `show` is called now and then to redraw."""
        with self.fleet.processes:
            self.fleet.start(show)
            readings = (row for rows in self.room.stream(ROUND) for row in rows)
            while not self.dealer.done or any(
                m.state in ("to come", "down") for m in self.failures
            ):
                self.fleet.wait()
                self._check_progress()
                self._fail_next()
                self._deal(readings)
                self._evaluate(ROUND)
                show()
            self.fleet.close(show)
        self._evaluate(1)
        return self._outcome()

    # -- while it runs -----------------------------------------------------------

    def _check_progress(self) -> None:
        """Raise FleetFailed if no row was scored for long."""
        now, scored = time.monotonic(), self.evaluated + self.fleet.scores.ready
        if scored != self._scored:
            self._scored, self._scored_at = scored, now
        if now - self._scored_at > PATIENCE_S:
            raise FleetFailed(
                f"no row was scored for {PATIENCE_S:g} s, of {self.dealer.dealt} that were dealt:"
                f" {self.fleet.summary}"
            )

    def _deal(self, readings: Iterator[Array]) -> None:
        rate, stints = self.dealer.total / self.settings.seconds, self.fleet.running
        missed = self._missed()
        if missed:
            # The node should be back before the snapshots end, or another is killed.
            rate = min(rate, SPARED_RATE)
            stints = [stint for stint in stints if stint.node in missed]
        elif self._is_late():
            rate /= SLOWER
        for out in self.alarms.out:
            self.watch.take_out(out.mote)
        for snapshot, stint in self.dealer.deal(stints, time.monotonic(), rate=rate):
            stint.snapshots.append(snapshot)
            row = np.where(self.watch.muted, np.nan, next(readings))
            self._gaps += int(np.count_nonzero(np.isnan(row)))
            self.fleet.give(stint, row)

    def _fail_next(self) -> None:
        """Kill the node whose turn it is, or restart it."""
        now = time.monotonic()
        for failure in self.failures:
            node = self.fleet.nodes[failure.node]
            if failure.is_due(now) and node.process is None:
                failure.starts(now)
                self.fleet.start_node(node)
            if failure.state != "over":
                if (
                    failure.state == "to come"
                    and self.dealer.dealt >= failure.at
                    and node.has_something_to_lose
                ):
                    failure.kills(now, self.dealer.dealt)
                    self.fleet.kill(node)
                return  # one at a time

    def _is_late(self) -> bool:
        """Return whether the fleet lags too far behind what it is fed."""
        behind = self.fleet.rows_behind * self.settings.clients / DAY
        now, made = time.time(), self.fleet.oldest_model_at
        self._dealt.append((now, self.dealer.dealt))
        while len(self._dealt) > 1 and self._dealt[1][0] <= made:
            self._dealt.popleft()
        unlearnt = self.dealer.dealt - self._dealt[0][1] if made < now else 0
        return max(behind, unlearnt / DAY) > LATE_DAYS

    def _missed(self) -> frozenset[str]:
        """Return nodes whose acknowledgement the run waits for."""
        ends = [*(failure.at for failure in self.failures[1:]), self.dealer.total]
        for failure, end in zip(self.failures, ends, strict=True):
            if failure.state != "over" and self.dealer.dealt >= end - SPARED:
                return failure.waits_for
        return frozenset()

    def _evaluate(self, least: int) -> None:
        """Evaluate scored rows, a round at a time."""
        while self.fleet.scores.ready >= least:
            scores = self.fleet.scores.take(ROUND)
            multiple = self.watch.see(scores)
            self.evaluated += len(scores.spe)
            spe = scores.spe[scores.known]
            self.history.snapshot.append(self.evaluated)
            self.history.spe.append(float(np.median(spe)) if len(spe) else np.nan)
            self.history.spe_worst.append(float(spe.max()) if len(spe) else np.nan)
            self.history.multiple.append(multiple.reshape(MOTES, -1).max(axis=1))

    # -- at the end ----------------------------------------------------------------

    def _outcome(self) -> DemoOutcome:
        values = self.dealer.dealt * self.schema.width
        return DemoOutcome(
            settings=self.settings,
            wire=self.site.wire.name,
            snapshots=self.dealer.dealt,
            values=values,
            gaps=self._gaps,
            rows_judged=self.watch.rows,
            rows_over_spe=self.watch.over_spe,
            rows_over_t2=self.watch.over_t2,
            raw_bytes=4 * (values - self._gaps),
            counts=counts_of(self.site.store(self.fleet.nodes[ROOT].member)),
            failures=self.failures,
            usage=tuple(node.usage for node in self.fleet.nodes.values()),
            verdicts=match_faults(self.room.faults, self.alarms),
            alarms=tuple(self.alarms.raised),
            anomalous_rows=self.watch.over_anomaly_score,
        )


def counts_of(path: Path) -> Counts:
    """Return what the store of an aggregator that has ended counts."""
    store = Store(path)
    try:
        kept = records.unpack_all(store.load())
    finally:
        store.close()
    counts = Counts()
    for each in kept.values():
        if isinstance(each, Row):
            counts += each.report.counts
        elif isinstance(each, Sealed):
            counts += each.counts
    return counts
