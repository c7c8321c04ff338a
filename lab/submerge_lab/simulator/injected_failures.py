"""InjectedFailures: the failures of a simulated fleet, by kind, and how they are healed. Their
number, times and hosts are drawn before the run begins.
"""

from __future__ import annotations

from collections.abc import Callable

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.protocol.machine import Flush, Forget, Linked, Records, SetDesired
from submerge_lab.simulator.faults import quiet
from submerge_lab.simulator.fleet import SimulatedFleet
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.nodes import GROUP
from submerge_lab.simulator.operators import ChannelOperator, HistoryOperator

HOUR, YEAR = 3600.0, 365.25 * 86400.0

COPY_EVERY_S = 1200.0
"""Average interval between copies of a disk; it may be rolled back to one."""


class InjectedFailures:
    """All failures of a fleet until it is healed."""

    def __init__(self, fleet: SimulatedFleet) -> None:
        self._fleet, self._rng = fleet, fleet.rng
        self._clones: list[Host] = []
        self.operator, self.channels = HistoryOperator(fleet), ChannelOperator(fleet)
        clients, root = fleet.levels[0], [fleet.root]
        middle = [host for hosts in fleet.levels[1:-1] for host in hosts]
        everyone = clients + middle + root
        faults = fleet.faults
        kinds: list[tuple[float, list[Host], Callable[[Host], None]]] = [
            (faults.partition, everyone, self._cut),
            (faults.slow, middle + root, self._slow),
            (faults.redeliver, middle + root, self._redeliver),
            (faults.kill, everyone, self._kill),
            (faults.card_lost, clients, self._lose_disk),
            (faults.card_back, clients, self._restore_disk),
            (faults.store_lost, middle, self._lose_disk),
            (faults.store_back, middle, self._restore_disk),
            (faults.root_lost, root, self._lose_disk),
            (faults.root_back, root, self._restore_disk),
            (faults.card_clone, clients, self._clone),
            (faults.store_clone, middle, self._clone),
            (faults.move, clients + middle, self._move),
            (faults.clock, everyone, self._set_clock),
            (faults.forget, clients, self._forget),
            (faults.twin, clients, self._double),
            (faults.orders, clients, self._order),
            (faults.histories, root, self.operator.act),
            (faults.channels, root, self.channels.act),
        ]
        span = fleet.plan.hours * HOUR
        for rate, hosts, failure in kinds:
            for host in hosts if rate else ():
                for _ in range(int(self._rng.poisson(rate * fleet.plan.hours))):
                    fleet.at(span * self._rng.random(), failure, host)
        if faults.harms_disks:
            for host in everyone:
                fleet.at(COPY_EVERY_S * self._rng.random(), self._copy, host)

    def heal(self) -> None:
        """End all failures, and the readings of all sensors."""
        fleet = self._fleet
        fleet.sensing = False
        fleet.log(fleet.root, "== everything is healed")
        fleet.faults = quiet(fleet.faults)
        fleet.network.faults = fleet.faults
        for clone in list(self._clones):
            self._retire(clone)
        for host in fleet.hosts:
            host.cut_until = host.slow_until = 0.0
            fleet.start(host)
        self.channels.finish()

    # -- network ---------------------------------------------------------------

    def _cut(self, host: Host) -> None:
        self._fleet.log(host, "is cut off")
        host.cut_until = self._fleet.time + self._span(self._fleet.faults.outage_s)
        if self._rng.random() < 0.5:
            self._fleet.at(host.cut_until, self._link, host, host.process)

    def _link(self, host: Host, process: int) -> None:
        if host.process == process:
            self._fleet.step(host, Linked())

    def _slow(self, host: Host) -> None:
        host.slow_until = self._fleet.time + self._span(1800.0)

    def _redeliver(self, host: Host) -> None:
        for delivery in self._fleet.network.retained_for(host):
            self._fleet.post(delivery)

    # -- processes and disks -----------------------------------------------------

    def _kill(self, host: Host) -> None:
        self._fleet.kill(host)
        self._fleet.at(
            self._fleet.time + self._span(self._fleet.faults.down_s), self._fleet.start, host
        )

    def _copy(self, host: Host) -> None:
        host.disk.copy()
        self._fleet.at(self._fleet.time + 2 * COPY_EVERY_S * self._rng.random(), self._copy, host)

    def _lose_disk(self, host: Host) -> None:
        self._kill(host)
        before, host.disk.records = host.disk.records, {}
        self._report_harm(host, before, "lost")

    def _restore_disk(self, host: Host) -> None:
        self._kill(host)
        before = host.disk.records
        host.disk.roll_back(self._rng)
        self._report_harm(host, before, "rolled back")

    def _report_harm(self, host: Host, before: Records, why: str) -> None:
        what = ("card", "store")[min(host.level, 1)]
        what = "root's store" if host is self._fleet.root else what
        self._fleet.log(host, f"{what} {why}")
        self._fleet.observer.on_disk_change(host, before, host.disk.records, f"{what} {why}")

    def _clone(self, host: Host) -> None:
        """Start a second process beside the first, from a copy of its disk, new or old."""
        if host.level and host.node is None:
            return
        clone = self._fleet.new_host(host.name, host.level, host.parent)
        clone.clone, clone.disk, clone.schema = True, host.disk.clone(), host.schema
        if self._rng.random() < 0.3:
            clone.disk.roll_back(self._rng)
        self._fleet.log(clone, "is cloned")
        self._fleet.observer.on_clone(clone)
        self._clones.append(clone)
        self._fleet.start(clone)
        self._fleet.at(self._fleet.time + self._span(HOUR), self._retire, clone)

    def _double(self, host: Host) -> None:
        """Start a second process beside the first, from a copy of its disk and its memory."""
        if host.node is None or host not in self._fleet.network.hosts[host.name]:
            return
        twin = self._fleet.double(host)
        self._fleet.log(twin, "is doubled")
        self._fleet.observer.on_double(twin)
        self._clones.append(twin)
        self._fleet.at(self._fleet.time + self._span(HOUR), self._retire, twin)

    def _retire(self, clone: Host) -> None:
        if clone not in self._clones:
            return
        self._clones.remove(clone)
        self._fleet.kill(clone)
        self._fleet.network.remove(clone)
        self._fleet.observer.on_disk_change(clone, clone.disk.records, {}, "clone retired")
        for host in self._fleet.hosts:
            if host.parent == clone.name:
                # Its connection breaks, and later ones lead to the other process.
                self._fleet.at(
                    self._fleet.time + self._rng.random(), self._link, host, host.process
                )

    def _move(self, host: Host) -> None:
        """Give it another parent of the same level; half the time its process can flush first."""
        others = [other.name for other in self._fleet.levels[host.level + 1]]
        others = [name for name in others if name != host.parent]
        if not others:
            return
        if self._rng.random() < 0.5:
            self._fleet.step(host, Flush())
        self._kill(host)
        self._fleet.network.move(host, others[int(self._rng.integers(len(others)))])
        self._fleet.log(host, f"moves to {host.parent}")
        self._fleet.observer.on_move(host)

    # -- clocks and operators ------------------------------------------------------

    def _set_clock(self, host: Host) -> None:
        years = float(self._rng.normal()) * 3.0
        host.clock_error = 0.0 if self._rng.random() < 0.3 else years * YEAR
        host.synced = bool(self._rng.random() < 0.5)

    def _forget(self, host: Host) -> None:
        for parent in self._fleet.network.hosts[str(host.parent)]:
            if isinstance(parent.node, AggregatorNode):
                self._fleet.log(parent, f"forgets {host.name} by order")
                self._fleet.observer.on_forget(host.name)
                self._fleet.network.clear(parent.name, host.name)
                self._fleet.step(parent, Forget(GROUP, host.name))

    def _order(self, host: Host) -> None:
        """Let an operator decide on the client's newest alarm, or pause or resume its learning."""
        root, node = self._fleet.root, host.node
        if not isinstance(root.node, AggregatorNode) or not isinstance(node, ClientNode):
            return
        alarms = node._ingest.alarms
        order = SetDesired(GROUP, host.name, paused=bool(self._rng.random() < 0.5))
        if alarms and self._rng.random() < 0.5:
            verdict = alarms[0].number, bool(self._rng.random() < 0.5)
            order = SetDesired(GROUP, host.name, verdict=verdict)
        self._fleet.log(root, f"orders {host.name}: {order.paused} {order.verdict}")
        process = root.process
        self._fleet.step(root, order)
        self._fleet.observer.on_order(order, answered=root.process == process)

    def _span(self, mean: float) -> float:
        return mean * float(self._rng.exponential())
