"""One run of the demo: it feeds a room to real processes and evaluates their output.

A node gets nothing but its configuration and its readings. The results use nothing but what nodes
write on their pipes while they run, and what their stores hold at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from submerge import Array, Scaling, Schema
from submerge.features import Gaussian, RandomFourier
from submerge.protocol.summaries import Subspaces, Summary
from submerge_lab.demo.accuracy import Accuracy, Pools
from submerge_lab.demo.balance import add_up, seen_by_killed
from submerge_lab.demo.failures import plan_failures
from submerge_lab.demo.feed import KNOCKS, Dealer, Trial
from submerge_lab.demo.fleet import PATIENCE_S, DemoFleet, FleetFailed
from submerge_lab.demo.outcome import DemoHistory, DemoOutcome, DemoSettings
from submerge_lab.demo.site import FIRST_ROWS, ROOT, Site, SiteMember, Wire, members
from submerge_lab.demo.stores import Held, merge_held, read_store
from submerge_lab.demo.verdict import match_faults
from submerge_lab.demo.watch import ChannelWatch
from submerge_lab.demo.wires import check_sizes
from submerge_lab.plants.room import DAY, MOTES, SNAPSHOT_S, Room

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


def site_of(settings: DemoSettings, room: Room, folder: Path, wire: Wire, **more: Any) -> Site:
    """Return the fleet's site.

    more : further fields of `Site`

    Raises
    ------
    UsageError
        If its messages are too large for how it is connected.
    """
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
        trial_of(settings).rows,
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
    """A run.

    folder : For the fleet's files: absolute, empty, existing.
    wire : Returns how nodes are connected, from the fleet's members.
    """

    def __init__(
        self, settings: DemoSettings, folder: Path, wire: Callable[[tuple[SiteMember, ...]], Wire]
    ) -> None:
        self.settings = settings
        self.room = Room(seed=settings.seed, days=settings.days, quiet_days=settings.settle_days)
        self.summaries = Subspaces(settings.rank, oversample=OVERSAMPLE)
        who = members(settings.clients)
        self.site = site_of(settings, self.room, folder, wire(who))
        self.schema = self.site.schema
        total = self.room.n_snapshots
        self.failures = plan_failures(who, total)
        self.fleet = DemoFleet(self.site, who, self.failures)
        self.dealer = Dealer(total, trial_of(settings))
        self.watch = ChannelWatch(self.room.channels, settle=int(settings.settle_days * DAY))
        self.alarms = self.fleet.alarms
        self.history = DemoHistory()
        self.evaluated = 0
        self._pools = Pools(self.schema)
        self._values = 0  # that were not missing
        self._scored, self._scored_at = -1, 0.0

    def run(self, show: Callable[[], None]) -> DemoOutcome:
        """Run the whole demo; `show` is called now and then to redraw.

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
                self._evaluate(ROUND)
                self._pool()
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

    def _readings(self) -> Iterator[tuple[Array, Array]]:
        """Yield each snapshot as it is read, and as sound motes would have read it."""
        for start in range(0, self.dealer.total, ROUND):
            stop = min(start + ROUND, self.dealer.total)
            yield from zip(
                self.room.readings(start, stop), self.room.sound(start, stop), strict=True
            )

    def _deal(self, readings: Iterator[tuple[Array, Array]]) -> None:
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
        for _, stint in self.dealer.deal(stints, time.monotonic(), rate=rate):
            row, sound = next(readings)
            self._values += int(np.count_nonzero(~np.isnan(row)))
            self.fleet.give(stint, np.where(self.watch.muted, np.nan, row), sound)

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
        age = self.fleet.model_age_s * self.settings.days / self.settings.seconds
        return max(behind, age) > LATE_DAYS

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

    def _pool(self) -> None:
        """Pool the rows that are certain to count."""
        for node in self.fleet.of("client"):
            for stint, rebuilt in zip(node.stints, node.rebuilt, strict=True):
                # The score of an acknowledged row may still be in the other pipe.
                rows = rebuilt.count(min(stint.acknowledged, stint.scored))
                if len(rows):
                    self._pools.add(rows)

    # -- at the end ----------------------------------------------------------------

    def _outcome(self) -> DemoOutcome:
        stores = {
            node.name: read_store(self.site.store(node.member))
            for node in (*self.fleet.of("root"), *self.fleet.of("aggregator"))
        }
        root = stores.pop(ROOT)
        model = merge_held(root, self.summaries, self.schema)
        if model is None:
            raise FleetFailed("the root holds nothing: no report has ever reached it")
        clients = self.fleet.of("client")
        stints = [stint for node in clients for stint in node.stints]
        balance = add_up(stints, stores, root)
        accuracy, linear = self._accuracy(model, stores)
        rebuilt = [each for node in clients for each in node.rebuilt]
        return DemoOutcome(
            settings=self.settings,
            wire=self.site.wire.name,
            snapshots=self.dealer.dealt,
            values=self.dealer.dealt * self.schema.width,
            gaps=sum(each.gaps for each in rebuilt),
            rows_judged=self.watch.rows,
            rows_over_spe=self.watch.over_spe,
            rows_over_t2=self.watch.over_t2,
            raw_bytes=4 * self._values,
            balance=balance,
            accuracy=accuracy,
            failures=self.failures,
            usage=tuple(node.usage for node in self.fleet.nodes.values()),
            verdicts=match_faults(self.room.faults, self.alarms),
            alarms=tuple(self.alarms.raised),
            anomalous_rows=self.watch.over_anomaly_score,
            linear=linear,
        )

    def _accuracy(
        self, model: Summary, stores: dict[str, dict[str, Held]]
    ) -> tuple[Accuracy, Accuracy | None]:
        """Pool the last rows that stores hold, then compare the model with all of them."""
        for node in self.fleet.of("client"):
            held = stores[str(node.member.parent)].get(node.name, Held())
            for stint, rebuilt in zip(node.stints, node.rebuilt, strict=True):
                until = seen_by_killed(node.stints, held) if stint.killed else stint.given
                self._pools.add(rebuilt.count(until))
        return self._pools.compare(model, self.summaries)
