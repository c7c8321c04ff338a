"""AlarmOracle: whether the root knows each alarm of each client, once, and each order arrives.

I11  After healing every alarm that a client remembers is known at the root as it is, and none is
     open there that has ended. Only a time that was of the future by an aggregator's clock may be
     earlier there. On the way none that has ended opens again. What an operator has ordered at the
     root holds at the client.

A client whose card was lost, copied or restored, or could not be written, may say again what it
has said before: it is left out. So may an aggregator whose store was copied or restored: from then
on only the end counts. A client that has moved is left out, too: the last row at its former parent
still lists the alarm that was open then.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from submerge.aggregator.alarms.below import alarm_status
from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import MOST_ALARMS, Alarm
from submerge.protocol.machine import Event, Records, SetDesired
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.network import NAME
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.observer import FleetObserver


class AlarmOracle(FleetObserver):
    """Follows the alarms of a fleet."""

    def __init__(self, fleet: SimulatedFleet) -> None:
        self._fleet = fleet
        self.violations: list[tuple[str, str]] = []
        self.raised: set[str] = set()
        self._ended: set[str] = set()
        self._doubtful = {NAME}  # with all nodes whose disk is not what they last wrote
        self._stores_hold = True  # no aggregator is among them
        self._paused: dict[str, bool | None] = {}

    # -- during the run --------------------------------------------------------

    def on_order(self, event: Event, *, answered: bool) -> None:
        """Note an order that was given at the root."""
        if isinstance(event, SetDesired) and event.paused is not None:
            # One without an answer may hold, and may not: the next one decides.
            self._paused[event.node] = event.paused if answered else None

    def on_write(self, host: Host) -> None:
        """Follow the alarms that the root knows."""
        if host is not self._fleet.root:
            return
        for alarm in named(self._listed()):
            self.raised.add(alarm.name)
            if not alarm.is_open:
                self._ended.add(alarm.name)
            elif (
                self._stores_hold and alarm.name in self._ended and alarm.node not in self._doubtful
            ):
                self._record(f"alarm {alarm.name} is open again at the root")

    def on_failed_write(self, host: Host) -> None:
        """Note that its next process may not know what this one says."""
        self._doubtful.add(host.name)

    def on_disk_change(self, host: Host, before: Records, after: Records, why: str) -> None:
        """Note a disk that was replaced."""
        self._doubt(host)

    def on_clone(self, host: Host) -> None:
        """Note a copied disk."""
        self._doubt(host)

    def on_double(self, host: Host) -> None:
        """Note a copied machine."""
        self._doubtful.add(host.name)

    def on_move(self, host: Host) -> None:
        """Note a node with another parent."""
        self._doubt(host)

    def on_forget(self, node: str) -> None:
        """Note a client whose rows an operator has removed."""
        self._doubtful.add(node)

    def _doubt(self, host: Host) -> None:
        self._doubtful.add(host.name)
        self._stores_hold = self._stores_hold and host.level == 0

    # -- at the end ------------------------------------------------------------

    def conclude(self) -> list[tuple[str, str]]:
        """Compare what the root knows with what each client does; return all violations."""
        ledger = self._fleet.root_ledger
        if ledger is not None and self._fleet.plan.learns_scaling and ledger.schema.scaling is None:
            # Clients that measure new channels report moments alone.
            return list(self.violations)
        listed = self._listed()
        known = {alarm.name: alarm for alarm in named(listed)}
        # A report lists so many, some of them twice if a client has moved; open ones go first.
        whole = len(listed) < MOST_ALARMS
        for host in self._fleet.levels[0]:
            node = host.node
            if not isinstance(node, ClientNode) or host.name in self._doubtful:
                continue
            own = {alarm.name: alarm for alarm in node._ingest.alarms}
            for name, alarm in own.items():
                there = known.get(name)
                if there is None and (alarm.is_open or whole):
                    self._record(f"the root does not know {_words(alarm)}")
                elif there is not None and not self._is_as_known(alarm, there):
                    self._record(f"the root knows {_words(there)}, {host} {_words(alarm)}")
            for name, there in known.items():
                if there.node == host.name and there.is_open and name not in own:
                    self._record(f"{_words(there)} at the root, and {host} has forgotten it")
            self._check_orders(host, node)
        return list(self.violations)

    def _is_as_known(self, alarm: Alarm, there: Alarm) -> bool:
        """Return whether the root knows an alarm as its client does."""
        # Where clocks were set wrong, an aggregator takes times of its future for earlier ones
        # (`row_time.alarms_begun`), and the root's may still be these.
        times = (alarm.began, alarm.peaked, alarm.ended)
        known = (there.began, there.peaked, there.ended)
        earlier = all(at <= own for at, own in zip(known, times, strict=True))
        if self._fleet.suffered.clock and earlier and there.is_open == alarm.is_open:
            began, peaked, ended = known
            alarm = replace(alarm, began=began, peaked=peaked, ended=ended)
        return there.revision == alarm.revision

    def _check_orders(self, host: Host, node: ClientNode) -> None:
        monitor, wanted = node._ingest.monitor, self._paused.get(host.name)
        if monitor is None or wanted is None or self._fleet.root.name in self._doubtful:
            return
        if monitor.desired.paused is not wanted:
            self._record(f"{host} has not received paused={wanted}")

    def _listed(self) -> tuple[Alarm, ...]:
        """Return the alarms that the root's rows list."""
        node = self._fleet.root.node
        ledger = node.ledger(GROUP) if isinstance(node, AggregatorNode) else None
        now = self._fleet.root.now(self._fleet.time)
        status = None if ledger is None else alarm_status(ledger, now, desired=0)
        return () if status is None else status.alarms

    def _record(self, what: str) -> None:
        if not self.violations:
            self._fleet.log(self._fleet.root, f"!! I11: {what}")
            self.violations.append(("I11", f"at {self._fleet.time:.0f} s: {what}"))


def named(alarms: Iterable[Alarm]) -> list[Alarm]:
    """Return one alarm of each name, as all readers choose it."""
    return [event.alarm for event in diff((), alarms) if event.kind == "start"]


def _words(alarm: Alarm) -> str:
    state = "open" if alarm.is_open else "ended"
    return f"alarm {alarm.name} ({state}{', ' if alarm.verdict else ''}{alarm.verdict})"
