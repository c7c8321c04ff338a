"""JobOracle: knows all rows and all failures, and holds each outcome against them.

J1  a job ends, right or clearly failed, within its time
J2  its answer has the bytes of the same job in one process, over those who stayed
J3  no contribution counts twice
J4  memory and messages have limits, peers can decode all, and nothing is left of what is over
J5  who has left is named, and who stayed is there; while all nodes are up, that is everyone
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge.jobs import roster
from submerge.jobs.arrays import Arrays
from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.local_run import Parts, run_here
from submerge.jobs.machine import JobMessage, JobPiece, JobProgress
from submerge.jobs.member import MOST_JOBS, JobMember
from submerge.jobs.root import ROOT_RESTARTED
from submerge.jobs.roster import Place, Roster
from submerge.protocol.messages import Incarnation
from submerge_lab.simulator.hosts import Host
from submerge_lab.simulator.jobs.fleet import JobFleet, JobObserver, Role
from submerge_lab.simulator.jobs.plan import bank_of

MOST_HELD = 4 << 20
"""Bytes that a role may hold: the simulated payloads are small."""

CALM = 300
"""Messages a minute of a host and job, and as many more for each node below."""

LATE_S = 1.0
"""By how much a job may pass its deadline."""


class OpenedJob(NamedTuple):
    """A job that was opened, and when."""

    job: Job
    time: float


class JobOracle(JobObserver):
    """Follows all jobs of a fleet."""

    def __init__(self, fleet: JobFleet, seed: int) -> None:
        self._fleet, self._seed = fleet, seed
        self.opened: dict[str, OpenedJob] = {}
        self.outcomes: dict[str, tuple[JobOutcome, float]] = {}
        self.calm: set[str] = set()
        self.violations: list[tuple[str, str]] = []
        self._rows: dict[tuple[str, str, Incarnation], int] = {}
        self._died: dict[tuple[str, Incarnation], float] = {}
        self._last_round: dict[str, float] = {}
        self._down_since: float | None = None
        self._said: set[str] = set()

    # -- what happens ------------------------------------------------------------------

    def on_open(self, job: Job, time: float) -> None:
        """Remember it."""
        self.opened[job.id] = OpenedJob(job, time)

    def on_rows(self, job: Job, host: Host, role: JobMember, rows: int) -> None:
        """Remember how many rows a process gave: it gives them once."""
        key = job.id, host.name, role.incarnation
        if key in self._rows:
            self._say("J2", f"{job.id}: {host} is asked for its rows twice")
        self._rows[key] = rows

    def on_progress(self, progress: JobProgress, time: float) -> None:
        """Remember when the last round began."""
        self._last_round[progress.job] = time

    def on_death(self, host: Host, role: Role, time: float) -> None:
        """Remember when a process died."""
        self._died[host.name, role.incarnation] = time

    def on_end(self, outcome: JobOutcome, time: float) -> None:
        """Hold an outcome against the truth."""
        job = outcome.job
        if job.id in self.outcomes:
            if outcome.failure != ROOT_RESTARTED:
                self._say("J1", f"{job.id} has two outcomes")
            return
        self.outcomes[job.id] = outcome, time
        if job.id not in self.opened:
            self._say("J1", f"{job.id} ends, and was never opened")
            return
        late = time - self.opened[job.id].time - job.job_s
        if late > LATE_S and outcome.failure != ROOT_RESTARTED:
            self._say("J1", f"{job.id} ends {late:.0f} s after its deadline")
        if (outcome.answer is None) == (outcome.failure == ""):
            self._say("J1", f"{job.id} has neither an answer nor a reason")
        self._check_names(outcome)
        if outcome.answer is not None:
            self._check_answer(outcome)

    def on_role(self, host: Host, role: Role, sent: int, time: float) -> None:
        """Check the limits of a role."""
        if len(role.jobs) > MOST_JOBS or role.held_bytes > MOST_HELD:
            self._say("J4", f"{host} holds {len(role.jobs)} jobs, {role.held_bytes} bytes")
        if sent > CALM * MOST_JOBS * (1 + len(self._fleet.levels[0])):
            self._say("J4", f"{host} sends {sent} messages in a minute")

    def on_send(self, host: Host, message: JobMessage) -> None:
        """Check the size of a message."""
        if isinstance(message, JobPiece) and message.job in self.opened:
            most = self.opened[message.job].job.piece_bytes
            if len(message.data) > most:
                self._say(
                    "J4", f"{host} sends a piece of {len(message.data)} bytes, {most} allowed"
                )

    def on_undecodable(self, host: Host, message: JobMessage) -> None:
        """Say so."""
        self._say("J4", f"{host} sends a {type(message).__name__} that no peer can decode")

    # -- checks ------------------------------------------------------------------------

    def _say(self, invariant: str, what: str) -> None:
        if (line := f"{invariant} {what}") in self._said:
            return
        self._said.add(line)
        self.violations.append((invariant, what))
        self._fleet.log(self._fleet.root, f"!! {line}")
        if self._fleet.transcript is not None:
            self._fleet.transcript.close()

    def _check_names(self, outcome: JobOutcome) -> None:
        """Check that everyone who was there is named once, and that the stayed were there (J5)."""
        job = outcome.job
        opened, stayed = dict(roster.leaves(outcome.opened)), dict(roster.leaves(outcome.stayed))
        if (
            stayed.keys() & outcome.left.keys()
            or opened.keys() != stayed.keys() | outcome.left.keys()
        ):
            self._say("J5", f"{job.id}: {len(opened)} were there, and not each is named once")
        if roster.size(outcome.stayed) != len(stayed):
            self._say("J3", f"{job.id}: a participant is there twice")
        if outcome.answer is None:
            return
        if len(stayed) < max(1, job.least):
            self._say("J5", f"{job.id}: {len(stayed)} stayed, {job.least} are needed")
        began = self._last_round.get(job.id, 0.0)
        for name, incarnation in stayed.items():
            if self._died.get((name, incarnation), began) < began:
                self._say("J5", f"{job.id}: {name} was dead when the last round began")

    def _check_answer(self, outcome: JobOutcome) -> None:
        """Check an answer against the same job in one process (J2), and its counts (J3)."""
        job, answer = outcome.job, outcome.answer
        tree = outcome.stayed if job.exact else outcome.opened
        left_after = {name: leaver.rounds for name, leaver in outcome.left.items()}
        try:
            parts = self._parts(tree, job)
            expected = run_here(job.kind, job.settings, parts, left_after=left_after)
        except (UsageError, KeyError) as error:
            self._say("J2", f"{job.id} has an answer, and in one process {error!r}")
            return
        if answer is None or not _same(expected, answer):
            self._say("J2", f"{job.id}: the answer is not that of those who stayed")
        elif job.exact or not outcome.left:
            held = sum(len(rows) for rows in _flat(parts))
            if counted(job, answer) != held:
                self._say("J3", f"{job.id}: {counted(job, answer)} rows counted of {held}")

    def _parts(self, place: Roster, job: Job) -> Parts:
        """Return the rows of all clients of a place."""
        return {name: self._part(below, name, job) for name, below in place.items()}

    def _part(self, place: Place, name: str, job: Job) -> Array | Parts:
        if isinstance(place, Incarnation):
            return bank_of(name, self._seed)[: self._rows[job.id, name, place]]
        return self._parts(place, job)

    def conclude(self, *, over: bool) -> list[tuple[str, str]]:
        """Check what is left in the end; `over`: no job can be under way any more."""
        fleet = self._fleet
        for name, (job, began) in self.opened.items():
            due = began + job.job_s + LATE_S
            if name not in self.outcomes and (over or due < fleet.time):
                self._say("J1", f"{name} has no end")
        for name in self.calm:
            outcome, _ = self.outcomes.get(name, (None, 0.0))
            everyone = {host.name for host in fleet.levels[0]}
            if outcome is None or outcome.failure:
                why = "not there" if outcome is None else outcome.failure
                self._say("J1", f"{name}, while all nodes are up: {why}")
            elif roster.names(outcome.stayed) != everyone:
                self._say("J5", f"{name}, while all nodes are up: {outcome.left} left")
        for host in fleet.hosts if over else ():
            role = fleet.role(host)
            if role is not None and (role.jobs or role.held_bytes):
                self._say("J4", f"{host} still holds {role.jobs}, {role.held_bytes} bytes")
        return self.violations

    def tally(self) -> Counter[str]:
        """Return how many jobs ended how."""
        found: Counter[str] = Counter(opened=len(self.opened))
        for outcome, _ in self.outcomes.values():
            found["answered" if outcome.answer is not None else "failed"] += 1
            found["left"] += len(outcome.left)
            found["attempts"] += outcome.attempts
            found["members"] += roster.size(outcome.opened)
            if outcome.answer is not None and outcome.left:
                found["answered without some"] += 1
        return found


def counted(job: Job, answer: Arrays) -> float:
    """Return the rows that an answer says it has seen, those held out included."""
    if job.kind == "moments":
        return float(answer["count"][0] + answer["held_out"][0])
    if job.kind in ("kpca", "nystrom"):
        return float(answer["counts"][0] + answer["counts"][1])
    if job.kind == "landmarks":
        return float(answer["counts"][0])
    return float(answer["counts"].sum() + answer["held_out"][0])


def _flat(parts: Parts) -> list[Array]:
    found: list[Array] = []
    for part in parts.values():
        if isinstance(part, Mapping):
            found += _flat(part)
        else:
            found.append(np.asarray(part))
    return found


def _same(left: Arrays, right: Arrays) -> bool:
    """Return whether arrays are equal to the bit."""
    return left.keys() == right.keys() and all(
        left[name].tobytes() == right[name].tobytes() for name in left
    )
