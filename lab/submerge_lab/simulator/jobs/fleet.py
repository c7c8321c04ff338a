"""JobFleet: a simulated fleet whose nodes have their parts in jobs as well. Jobs have a generator,
a network and disks of their own: what streams meanwhile runs as it would without them, to the byte.
Hosts, links and failures are the fleet's.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable
from typing import Any, cast

import numpy as np

from submerge.aggregator.node import AggregatorNode
from submerge.client.node import ClientNode
from submerge.errors import UsageError
from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.machine import (
    ChildrenKnown,
    JobEnded,
    JobEvent,
    JobHeard,
    JobMessage,
    JobPiece,
    JobProgress,
    OpenJob,
    SendJob,
)
from submerge.jobs.member import JobMember
from submerge.jobs.points import MOST_PER_DAY, HeldRows, PointBudget, draws, seed_of
from submerge.jobs.relay import JobRelay
from submerge.jobs.root import JobRoot
from submerge.protocol.machine import Effect, Event, Keep, Note, Now, Start, Tick
from submerge.protocol.messages import Message
from submerge_lab.simulator.faults import Faults
from submerge_lab.simulator.feeds import Feed
from submerge_lab.simulator.fleet import RESTARTED_S, SimulatedFleet
from submerge_lab.simulator.hosts import Host, SimulatedDisk
from submerge_lab.simulator.jobs.masking import SimulatedMasking
from submerge_lab.simulator.jobs.plan import FINGERPRINT, bank_of, rows_at
from submerge_lab.simulator.network import Delivery, Network
from submerge_lab.simulator.plan import Plan

Role = JobRoot | JobRelay | JobMember


class JobObserver:
    """Receives what happens to jobs, and does nothing with it."""

    def on_open(self, job: Job, time: float) -> None:
        """Handle a job whose record is kept."""

    def on_rows(self, job: Job, host: Host, role: JobMember, rows: int) -> None:
        """Handle that a client is asked for its rows."""

    def on_progress(self, progress: JobProgress, time: float) -> None:
        """Handle a round that begins."""

    def on_end(self, outcome: JobOutcome, time: float) -> None:
        """Handle an outcome at the root."""

    def on_death(self, host: Host, role: Role, time: float) -> None:
        """Handle a process that dies."""

    def on_role(self, host: Host, role: Role, sent: int, time: float) -> None:
        """Handle a role after a step, and how many messages its host sent this minute."""

    def on_send(self, host: Host, message: JobMessage) -> None:
        """Handle a message before it goes."""

    def on_undecodable(self, host: Host, message: JobMessage) -> None:
        """Handle a message that its receiver cannot decode."""


JobWire = Callable[[JobMessage], JobMessage | None]
"""Returns a message as its receiver decodes it; None if it refuses it."""


class SilentClient(ClientNode):
    """A client that does not stream."""

    def step(self, event: Event, now: Now) -> list[Effect]:
        """Do nothing."""
        return []

    @property
    def wakes_at(self) -> float:
        """Never."""
        return math.inf


class SilentAggregator(AggregatorNode):
    """An aggregator that does not stream."""

    def step(self, event: Event, now: Now) -> list[Effect]:
        """Do nothing."""
        return []

    @property
    def wakes_at(self) -> float:
        """Never."""
        return math.inf


class JobFleet(SimulatedFleet):
    """A fleet with jobs."""

    def __init__(
        self,
        plan: Plan,
        faults: Faults,
        rng: np.random.Generator,
        feed: Feed,
        seed: int,
        **nodes: Any,
    ) -> None:
        self.job_rng = np.random.Generator(np.random.PCG64([seed, 22]))
        self.job_observer = JobObserver()
        self.roles: dict[int, tuple[int, Role]] = {}
        self._seed, self._job_wakes = seed, dict[int, float]()
        self._job_disks: dict[int, SimulatedDisk] = {}
        self._job_sent: Counter[tuple[int, int]] = Counter()
        self.messages = 0
        self.job_wire: JobWire | None = None
        super().__init__(plan, faults, rng, feed, **nodes)
        self._job_network = Network(faults, self.job_rng)
        self._job_network.hosts = self.network.hosts
        self._job_network.shared = self.network.shared

    @property
    def dies_between(self) -> bool:
        """Whether what happens in a job may end a process: not where a stream runs beside."""
        return self._maker.client is SilentClient

    # -- processes -------------------------------------------------------------------

    def start(self, host: Host) -> None:
        """Start a process, and its part in jobs."""
        before = host.node
        super().start(host)
        if host.node is None or host.node is before:
            return
        rng = np.random.Generator(np.random.PCG64(int(self.job_rng.integers(2**63))))
        role: Role
        if host.parent is None:
            role = JobRoot(host.name, rng)
        elif host.level:
            role = JobRelay(host.name, rng)
        else:
            masking = SimulatedMasking(host.name, host.process)
            budget = PointBudget(MOST_PER_DAY)
            role = JobMember(host.name, self._source(host), rng, budget=budget, masking=masking)
        self.roles[host.number] = host.process, role
        self._job_wakes[host.number] = math.inf
        disk = self._job_disks.setdefault(host.number, SimulatedDisk())
        self.job_step(host, Start(dict(disk.records)))
        self.know_children(host)
        for parent in self.levels[host.level + 1] if host.parent is not None else ():
            self.know_children(parent)  # it may have moved

    def kill(self, host: Host) -> None:
        """End a process, and its part in jobs."""
        if (role := self.role(host)) is not None:
            self.job_observer.on_death(host, role, self.time)
        super().kill(host)
        self.roles.pop(host.number, None)

    def role(self, host: Host) -> Role | None:
        """Return the part in jobs of a running process."""
        process, role = self.roles.get(host.number, (0, None))
        return role if process == host.process and host.node is not None else None

    def know_children(self, host: Host) -> None:
        """Say to a parent who is below it now."""
        if host.level:
            below = (
                name
                for name, hosts in self.network.hosts.items()
                for each in hosts
                if each.parent == host.name
            )
            self.job_step(host, ChildrenKnown(frozenset(below)))

    def _source(self, host: Host) -> Callable[[Job], HeldRows | str]:
        bank = bank_of(host.name, self._seed)

        def held(job: Job) -> HeldRows | str:
            rows, role = rows_at(bank, self.time), self.role(host)
            if isinstance(role, JobMember):
                self.job_observer.on_rows(job, host, role, len(rows))
            # As in one process, so that an oracle computes the same.
            drawn = draws(seed_of(job.settings), host.name, "held out", len(rows))
            return HeldRows(FINGERPRINT, rows, drawn)

        return held

    # -- steps -----------------------------------------------------------------------

    def open_job(self, job: Job) -> None:
        """Open a job, if the root is there."""
        try:
            self.job_step(self.root, OpenJob(job))
        except UsageError as error:
            self.log(self.root, "opens no job", str(error))

    def job_step(self, host: Host, event: JobEvent) -> None:
        """Step a part in jobs, and perform its effects one after the other."""
        role, process = self.role(host), host.process
        if role is None:
            return
        opened = event.job if isinstance(event, OpenJob) else None
        for effect in role.step(event, host.now(self.time)):
            if self._dies(host):
                return
            match effect:
                case Keep():
                    if not self._keep(host, effect):
                        return
                    if opened is not None:
                        self.job_observer.on_open(opened, self.time)
                        opened = None
                case SendJob():
                    self._send_job(host, effect)
                case JobEnded() if host is self.root:
                    self.log(host, f"ends {effect.outcome.job.id}", effect.outcome.failure)
                    self.job_observer.on_end(effect.outcome, self.time)
                case JobProgress():
                    self.log(host, f"{effect}")
                    self.job_observer.on_progress(effect, self.time)
                case Note():
                    self.log(host, effect.what, effect.facts)
                case _:
                    pass
        if host.process == process:
            sent = self._job_sent[host.number, int(self.time // 60)]
            self.job_observer.on_role(host, role, sent, self.time)
            self._wind_job(host, role)

    def _dies(self, host: Host) -> bool:
        share = self.network.faults.kill_between if self.dies_between else 0.0
        if not share or self.job_rng.random() >= share:
            return False
        self.kill(host)
        down_s = self.network.faults.down_s * float(self.job_rng.exponential())
        self.at(self.time + down_s, self.start, host)
        return True

    def _keep(self, host: Host, keep: Keep) -> bool:
        """Perform a write; return False if it failed and ended the process."""
        share = self.network.faults.failed_write if self.dies_between else 0.0
        if share and self.job_rng.random() < share:
            self.log(host, "write of a job fails")
            self.kill(host)
            self.at(self.time + RESTARTED_S, self.start, host)
            return False
        self._job_disks[host.number].write(keep)
        return True

    def _send_job(self, host: Host, send: SendJob) -> None:
        self.messages += 1
        self._job_sent[host.number, int(self.time // 60)] += 1
        self.job_observer.on_send(host, send.message)
        network = self._job_network
        network.faults = self.network.faults
        carried = send.message if self.job_wire is None else self.job_wire(send.message)
        if carried is None:
            self.job_observer.on_undecodable(host, send.message)
            return
        # The network carries any message alike.
        message = cast(Message, carried)
        for delivery in network.send(host, send.to, message, None, self.time):
            self.at(self.time + delivery.delay, self._deliver_job, delivery)

    def _deliver_job(self, delivery: Delivery) -> None:
        host, origin = delivery.host, delivery.origin
        if host.node is None or (not delivery.shared and host.process != delivery.process):
            return
        message = cast(JobMessage, delivery.message)
        if self.transcript is not None:
            self.log(host, "hears", _words(message))
        above = host.parent == origin.name
        self.job_step(host, JobHeard(message, origin.name, above))

    def _wind_job(self, host: Host, role: Role) -> None:
        """Schedule a tick for when the role asks for one."""
        wakes = max(role.wakes_at - host.now(0.0).steady, self.time)
        if wakes < self._job_wakes[host.number]:
            self._job_wakes[host.number] = wakes
            self.at(wakes, self._wake_job, host, host.process, wakes)

    def _wake_job(self, host: Host, process: int, wakes: float) -> None:
        if host.process == process and self._job_wakes.get(host.number) == wakes:
            self._job_wakes[host.number] = math.inf
            self.job_step(host, Tick())


def _words(message: JobMessage) -> str:
    """Return a message of a job in few words."""
    stamp = message.stamp
    which = "share" if message.up else "ask"
    head = f"{message.job} {stamp.node}#{stamp.seq} {which} {message.parcel.hex()[:4]}"
    if isinstance(message, JobPiece):
        return f"{head} piece {message.number + 1}/{message.total} of {message.weight}"
    return f"{head} taken {message.have.hex()[:8]}{' over' if message.over else ''}"
