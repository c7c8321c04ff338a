"""One run of the demo: the room is dealt to real processes, and what they say is judged.

Nothing is told to a node but its configuration and its readings. Nothing is believed of it
but what it says on its pipes while it runs, and what stands in its store in the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np

from submerge import Array, Scaling, Schema
from submerge.features import Gaussian, RandomFourier
from submerge.protocol.summaries import Subspaces, Summary
from submerge_fleet.demo.accuracy import Accuracy, Pools
from submerge_fleet.demo.balance import balanced, seen_by_killed
from submerge_fleet.demo.failures import planned
from submerge_fleet.demo.feed import KNOCKS, Dealer, Trial
from submerge_fleet.demo.fleet import PATIENCE_S, DemoFleet, FleetFailed
from submerge_fleet.demo.outcome import DemoOutcome, DemoSettings, History
from submerge_fleet.demo.site import FIRST_ROWS, ROOT, Site, SiteMember, Wire, members
from submerge_fleet.demo.stores import Held, held_in, merged
from submerge_fleet.demo.verdict import judged
from submerge_fleet.demo.watch import ChannelWatch
from submerge_fleet.demo.wires import check_sizes
from submerge_fleet.plants.room import DAY, MOTES, SNAPSHOT_S, Room

OVERSAMPLE = 10
"""Spare directions. A fault that comes late is small in its first blocks; with five to
spare it may be cut off before it has grown."""

OFFSET = (21.0, 33.0, 200.0, 2.7)
SCALE = (1.0, 3.0, 300.0, 0.04)
"""The fixed scaling, by quantity: about thirty times what a sound sensor stirs by."""

GAMMA = 0.0016
"""Of the kernel, where there is one: 1 / (2 tr C) in the units of that scaling, about."""

ROUND = 48
"""Snapshots that are judged together: under half an hour."""

LATE_DAYS, SLOWER = 0.75, 8.0
"""While a client's model, or what its parent has acknowledged, is more of the room's days behind,
the room's clock runs so much slower. On a busy machine, or with an aggregator away for seconds,
days of weather would else pass that no model has heard of."""

ARMED = 7 / 8
"""Of the time without faults, after which limits of alarms are believed: it takes a while until
they have come down."""

SPARED, SPARED_RATE = 200, 40.0
"""Snapshots that are left for whoever is not back yet, and how many of them a second."""


class Demo:
    """A run.

    Parameters
    ----------
    settings : Settings
    folder : Path
        Where the fleet lives: absolute, empty, and there.
    wire : callable
        Returns how nodes reach one another, from their names.

    Attributes
    ----------
    room, fleet, watch, alarms, history, mishaps
        As they stand.
    judged : int
        Snapshots that the watch has seen.
    """

    def __init__(
        self, settings: DemoSettings, folder: Path, wire: Callable[[tuple[SiteMember, ...]], Wire]
    ) -> None:
        self.settings = settings
        self.room = Room(seed=settings.seed, days=settings.days, quiet_days=settings.settle_days)
        channels, scaling = self.room.channels, Scaling(OFFSET * MOTES, SCALE * MOTES)
        # One mean: whatever a client is dealt, it is the same room's.
        self.schema = Schema(channels, scaling, center="fleet")
        if settings.features:
            kernel = RandomFourier(Gaussian(GAMMA), settings.features)
            self.schema = replace(self.schema, features=kernel)
        self.summaries = Subspaces(settings.rank, oversample=OVERSAMPLE)
        who = members(settings.clients)
        first_rows = max(2, FIRST_ROWS // settings.clients)
        self.site = Site(
            folder,
            wire(who),
            self.schema,
            settings.rank,
            OVERSAMPLE,
            first_rows,
            # They take turns.
            row_s=settings.clients * SNAPSHOT_S,
            settle_s=ARMED * settings.settle_days * 86400,
        )
        check_sizes(self.site)
        total = self.room.n_snapshots
        self.failures = planned(who, total)
        self.fleet = DemoFleet(self.site, who, self.failures)
        self.dealer = Dealer(total, Trial(first_rows, settings.clients / KNOCKS))
        self.watch = ChannelWatch(self.room.channels, settle=int(settings.settle_days * DAY))
        self.alarms = self.fleet.alarms
        self.history = History()
        self.judged = 0
        self._pools = Pools(self.schema)
        self._values = 0  # that were not missing
        self._scored, self._scored_at = -1, 0.0

    def run(self, show: Callable[[], None]) -> DemoOutcome:
        """Run it all; `show` is called every now and then.

        Raises
        ------
        FleetFailed
            If a node does not start, does not end, or ends by itself.
        """
        with self.fleet.processes:
            self.fleet.start(show)
            readings = self._readings()
            while not self.dealer.done or any(
                m.state in ("to come", "down") for m in self.failures
            ):
                self.fleet.wait()
                self._check_progress()
                self._fail_next()
                self._deal(readings)
                self._judge(ROUND)
                self._pool()
                show()
            self.fleet.close(show)
        self._judge(1)
        return self._outcome()

    # -- while it runs -----------------------------------------------------------

    def _check_progress(self) -> None:
        """Give up where nothing has come of anything for long.

        Raises
        ------
        FleetFailed
        """
        now, scored = time.monotonic(), self.judged + self.fleet.scores.ready
        if scored != self._scored:
            self._scored, self._scored_at = scored, now
        if now - self._scored_at > PATIENCE_S:
            raise FleetFailed(
                f"no row was scored for {PATIENCE_S:g} s, of {self.dealer.dealt} that were dealt:"
                f" {self.fleet.said}"
            )

    def _readings(self) -> Iterator[Array]:
        for readings in self.room.stream(ROUND):
            yield from readings

    def _deal(self, readings: Iterator[Array]) -> None:
        rate, stints = self.dealer.total / self.settings.seconds, self.fleet.running
        missed = self._missed()
        if missed:
            # It should be back before there is no more to deal, or another is killed.
            rate = min(rate, SPARED_RATE)
            stints = [stint for stint in stints if stint.node in missed]
        elif self._is_late():
            rate /= SLOWER
        for out in self.alarms.out:
            self.watch.take_out(out.mote)
        for _, stint in self.dealer.deal(stints, time.monotonic(), rate=rate):
            row = next(readings)
            self._values += int(np.count_nonzero(~np.isnan(row)))
            self.fleet.give(stint, np.where(self.watch.muted, np.nan, row))

    def _fail_next(self) -> None:
        """Kill who is to be killed, and start again who was."""
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
        """Whether what the fleet knows lags too far behind what it is fed."""
        behind = self.fleet.rows_behind * self.settings.clients / DAY
        age = self.fleet.model_age_s * self.settings.days / self.settings.seconds
        return max(behind, age) > LATE_DAYS

    def _missed(self) -> frozenset[str]:
        """Return whose acknowledgement is waited for, if it is time to wait."""
        ends = [*(failure.at for failure in self.failures[1:]), self.dealer.total]
        for failure, end in zip(self.failures, ends, strict=True):
            if failure.state != "over" and self.dealer.dealt >= end - SPARED:
                return failure.waits_for
        return frozenset()

    def _judge(self, least: int) -> None:
        """Let the watch see what is scored, a round at a time."""
        while self.fleet.scores.ready >= least:
            scores = self.fleet.scores.take(ROUND)
            multiple = self.watch.see(scores)
            self.judged += len(scores.spe)
            spe = scores.spe[scores.known]
            self.history.snapshot.append(self.judged)
            self.history.spe.append(float(np.median(spe)) if len(spe) else np.nan)
            self.history.spe_worst.append(float(spe.max()) if len(spe) else np.nan)
            self.history.multiple.append(multiple.reshape(MOTES, -1).max(axis=1))

    def _pool(self) -> None:
        """Pool the rows that count for certain."""
        for node in self.fleet.of("client"):
            for stint, rebuilt in zip(node.stints, node.rebuilt, strict=True):
                # A row that is acknowledged may still be in the other pipe, on its way to us.
                rows = rebuilt.count(min(stint.acknowledged, stint.scored))
                if len(rows):
                    self._pools.add(rows)

    # -- when it is over -----------------------------------------------------------

    def _outcome(self) -> DemoOutcome:
        stores = {
            node.name: held_in(self.site.store(node.member))
            for node in (*self.fleet.of("root"), *self.fleet.of("aggregator"))
        }
        root = stores.pop(ROOT)
        model = merged(root, self.summaries, self.schema)
        if model is None:
            raise FleetFailed("the root holds nothing: no report has ever reached it")
        clients = self.fleet.of("client")
        stints = [stint for node in clients for stint in node.stints]
        balance = balanced(stints, stores, root)
        accuracy, linear = self._accuracy(model, stores)
        rebuilt = [each for node in clients for each in node.rebuilt]
        return DemoOutcome(
            settings=self.settings,
            wire=self.site.wire.name,
            snapshots=self.dealer.dealt,
            values=self.dealer.dealt * self.schema.width,
            gaps=sum(each.gaps for each in rebuilt),
            unheard=sum(len(each.unheard) for each in rebuilt),
            rows_judged=self.watch.rows,
            rows_over_spe=self.watch.over_spe,
            rows_over_t2=self.watch.over_t2,
            raw_bytes=4 * self._values,
            balance=balance,
            accuracy=accuracy,
            failures=self.failures,
            usage=tuple(node.usage for node in self.fleet.nodes.values()),
            verdicts=judged(self.room.faults, self.alarms),
            alarms=tuple(self.alarms.raised),
            anomalous_rows=self.watch.over_anomaly_score,
            linear=linear,
        )

    def _accuracy(
        self, model: Summary, stores: dict[str, dict[str, Held]]
    ) -> tuple[Accuracy, Accuracy | None]:
        """Pool the last rows that are held, then hold the model against all of them."""
        for node in self.fleet.of("client"):
            held = stores[str(node.member.parent)].get(node.name, Held())
            for stint, rebuilt in zip(node.stints, node.rebuilt, strict=True):
                until = seen_by_killed(node.stints, held) if stint.killed else stint.given
                self._pools.add(rebuilt.count(until))
                if rebuilt.unheard:
                    self._pools.guess(np.array(rebuilt.unheard), model)
        return self._pools.compare(model, self.summaries)
