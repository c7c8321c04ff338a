"""A job's roles around a table: messages are delivered at once, unless a test drops them.

table = JobTable({"hall": {"a": rows, "b": rows}, "c": rows})
outcome = table.run(job(kind="moments"))
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.local_run import Parts
from submerge.jobs.machine import (
    ChildrenKnown,
    JobEnded,
    JobEvent,
    JobHeard,
    JobProgress,
    OpenJob,
    SendJob,
)
from submerge.jobs.member import JobMember
from submerge.jobs.points import HeldRows, PointBudget, draws, seed_of
from submerge.jobs.relay import JobRelay
from submerge.jobs.root import JobRoot
from submerge.protocol.machine import Keep, Now, Start, Tick
from submerge_lab.simulator.jobs.masking import SimulatedMasking

FINGERPRINT = "ab" * 32
ROOT = "root"

Role = JobRoot | JobRelay | JobMember


def job(kind: str = "kmeans", **fields: Any) -> Job:
    """Return a job of two channels, with two clusters if it is k-means."""
    given = {"id": "job-1", "group": "room", "fingerprint": FINGERPRINT, "width": 2}
    given |= {"settings": {"clusters": 2} if kind == "kmeans" else {}}
    return Job(kind=kind, **given | fields)


class JobTable:
    """All roles of a fleet; parts name the clients' rows and the tree."""

    def __init__(self, parts: Parts, *, share_points: int = 0) -> None:
        self._share_points = share_points
        self.members_kept: dict[str, dict[Any, Any]] = {}
        self.time, self._processes = 0.0, 0
        self.rows: dict[str, np.ndarray] = {}
        self.parent: dict[str, str] = {}
        self.children: dict[str, set[str]] = {ROOT: set()}
        self.kept: dict[Any, Any] = {}
        self.sent: deque[tuple[str, SendJob]] = deque()
        self.heard: list[tuple[str, SendJob]] = []
        self.outcomes: list[tuple[str, JobOutcome]] = []
        self.progress: list[JobProgress] = []
        self.notes: list[Any] = []
        self.loses: Callable[[str, SendJob], bool] = lambda *_: False
        self.roles: dict[str, Role] = {}
        self._seat(parts, ROOT)
        for name in (ROOT, *self.parent):
            self.start(name)

    def _seat(self, parts: Parts, above: str) -> None:
        for name, part in parts.items():
            self.parent[name] = above
            self.children[above].add(name)
            if isinstance(part, Mapping):
                self.children[name] = set()
                self._seat(part, name)
            else:
                self.rows[name] = part

    def start(self, name: str) -> None:
        """Start a new process: what was in memory is gone."""
        self._processes += 1
        rng = np.random.default_rng(self._processes)
        if name == ROOT:
            self.roles[name] = JobRoot(name, rng)
        elif name in self.children:
            self.roles[name] = JobRelay(name, rng)
        else:
            self.roles[name] = JobMember(
                name,
                lambda job, name=name: HeldRows(
                    FINGERPRINT,
                    self.rows[name],
                    draws(seed_of(job.settings), name, "held out", len(self.rows[name])),
                ),
                rng,
                budget=PointBudget(self._share_points),
                masking=SimulatedMasking(name, self._processes),
            )
        self.step(name, Start(dict(self.kept_of(name))))
        if name in self.children:
            self.step(name, ChildrenKnown(frozenset(self.children[name])))

    def kept_of(self, name: str) -> dict[Any, Any]:
        """Return the records of a node."""
        return self.kept if name == ROOT else self.members_kept.setdefault(name, {})

    def stop(self, name: str) -> None:
        """End a process."""
        self.roles.pop(name, None)

    def now(self) -> Now:
        """Return both clocks."""
        return Now(self.time, 1.7e9 + self.time)

    def step(self, name: str, event: JobEvent) -> None:
        """Step a role, and put what it sends on the table."""
        role = self.roles.get(name)
        for effect in () if role is None else role.step(event, self.now()):
            match effect:
                case SendJob():
                    self.sent.append((name, effect))
                case JobEnded():
                    self.outcomes.append((name, effect.outcome))
                case JobProgress():
                    self.progress.append(effect)
                case Keep():
                    kept = self.kept_of(name)
                    for key, record in effect.records.items():
                        kept[key] = record
                        if record is None:
                            del kept[key]
                case _:
                    self.notes.append(effect)

    def deliver(self) -> None:
        """Deliver everything that is on the table, and what follows from it."""
        while self.sent:
            source, send = self.sent.popleft()
            if self.loses(source, send):
                continue
            self.heard.append((source, send))
            above = self.parent.get(send.to) == source
            self.step(send.to, JobHeard(send.message, source, above))

    def pass_time(self, seconds: float) -> None:
        """Let time pass: each role has its ticks."""
        end = self.time + seconds
        while True:
            self.deliver()
            due = min(((role.wakes_at, name) for name, role in self.roles.items()))
            if due[0] > end:
                break
            self.time = max(self.time, due[0])
            self.step(due[1], Tick())
        self.time = end

    def run(self, job: Job) -> JobOutcome:
        """Run a job; return the root's outcome."""
        self.step(ROOT, OpenJob(job))
        self.pass_time(job.job_s + 2 * job.round_s)
        return next(each for name, each in self.outcomes if name == ROOT and each.job.id == job.id)
