"""JobRoot: opens jobs, closes rounds, and ends each job as docs/jobs.md says under "Rules"."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Mapping
from copy import copy
from dataclasses import replace
from typing import Any

import numpy as np

from submerge.errors import PeerError, UsageError
from submerge.jobs import roster
from submerge.jobs.arrays import Arrays, check_finite
from submerge.jobs.collection import ShareCollection, reason_of, refusal
from submerge.jobs.envelopes import ENDED, OPENING, JobAsk, JobShare
from submerge.jobs.job import Job, JobOutcome, Leaver
from submerge.jobs.kind import JobAnswer, JobKind, PhaseDown
from submerge.jobs.kinds import kind_of
from submerge.jobs.machine import (
    CancelJob,
    ChildrenKnown,
    JobEffect,
    JobEnded,
    JobEvent,
    JobHeard,
    JobPiece,
    JobPieceTaken,
    JobProgress,
    JobTimes,
    KnownChildren,
    OpenJob,
)
from submerge.jobs.member import MOST_JOBS
from submerge.jobs.roster import Roster
from submerge.protocol.machine import Keep, Key, Note, Now, Records, Start
from submerge.protocol.messages import Incarnation
from submerge.protocol.names import RandomSource

ROOT_RESTARTED = "the root restarted"

REASONS, MOST_REASON = 2, 80
"""Reasons that a failure names, and letters of each."""

RECORD = "job"
"""First part of the keys of its records: one for each job that is under way, as bytes."""


class JobRoot:
    """The part in jobs of an aggregator without a parent."""

    incarnation: Incarnation

    def __init__(self, node: str, rng: RandomSource, times: JobTimes | None = None) -> None:
        self.node, self._rng, self._times = node, rng, times or JobTimes()
        self._children = KnownChildren()
        self._running: dict[str, RunningJob] = {}
        self._ending: dict[str, ShareCollection] = {}

    @property
    def wakes_at(self) -> float:
        """When a `Tick` may change something."""
        running = (each.wakes_at for each in self._running.values())
        ending = (each.wakes_at for each in self._ending.values())
        return min((*running, *ending), default=math.inf)

    @property
    def held_bytes(self) -> int:
        collections = [each.collection for each in self._running.values()]
        return sum(each.held_bytes for each in (*collections, *self._ending.values()))

    @property
    def jobs(self) -> tuple[str, ...]:
        return tuple(self._running)

    def step(self, event: JobEvent, now: Now) -> list[JobEffect]:
        """Return the effects of an event, in order; UsageError if a job cannot be opened."""
        effects: list[JobEffect] = []
        match event:
            case Start(kept):
                self.incarnation = Incarnation.draw(now.wall_ms, 0, self._rng)
                effects += _lost(kept)
            case ChildrenKnown():
                self._children.learn(event)
            case OpenJob(job):
                self._open(job, now, effects)
            case CancelJob(name) if name in self._running:
                self._fail(self._running[name], "cancelled", now, effects)
            case JobHeard(JobPiece() as piece, sender, False) if piece.up:
                self._take_share(piece, sender, effects)
            case JobHeard(JobPieceTaken() as taken, sender, False) if not taken.up:
                self._take_taken(taken, sender, now, effects)
        for running in list(self._running.values()):
            self._advance(running, now, effects)
        for name, ending in list(self._ending.items()):
            if ending.complete or ending.closes_at <= now.steady:
                del self._ending[name]
            else:
                effects += ending.send_due(now, self._rng)
        return effects

    def _open(self, job: Job, now: Now, effects: list[JobEffect]) -> None:
        if job.id in self._running or job.id in self._ending:
            raise UsageError(f"a job has an id of its own, got {job.id} again")
        if len(self._running) >= MOST_JOBS:
            raise UsageError(f"at most {MOST_JOBS} jobs at once, got one more: wait for one")
        kind = kind_of(job)
        ask = JobAsk(job, 0, job.open_s, None, OPENING, {})
        running = RunningJob(job, kind, ask, self._collect(ask, None, now), now)
        self._running[job.id] = running
        effects.append(Keep({_key(job.id): json.dumps(job.written()).encode()}))
        effects.append(JobProgress(job.id, OPENING, 0, 0, 0))

    def _collect(self, ask: JobAsk, kind: JobKind | None, now: Now) -> ShareCollection:
        known = self._children.of(ask.job.group)
        return ShareCollection(ask, known, kind, self.incarnation, self._times, now)

    def _take_share(self, piece: JobPiece, sender: str, effects: list[JobEffect]) -> None:
        if piece.stamp.node != sender:
            effects.append(Note("job message ignored", {"job": piece.job, "sender": sender}))
            return
        running = self._running.get(piece.job)
        if running is None:
            effects.append(refusal(piece, self.incarnation))
            return
        effects += running.collection.take_piece(sender, piece)[0]

    def _take_taken(
        self, taken: JobPieceTaken, sender: str, now: Now, effects: list[JobEffect]
    ) -> None:
        running = self._running.get(taken.job)
        collection = self._ending.get(taken.job) if running is None else running.collection
        if collection is not None and taken.stamp.node == sender:
            effects += collection.take_taken(sender, taken, now, self._rng)

    def _advance(self, running: RunningJob, now: Now, effects: list[JobEffect]) -> None:
        """Close what is complete or over its time, and send what is due."""
        while running.job.id in self._running:
            collection = running.collection
            if now.steady >= running.ends_at:
                self._fail(running, f"no answer within {running.job.job_s:g} s", now, effects)
            elif collection.complete or collection.closes_at <= now.steady:
                self._close(running, collection.share(), now, effects)
            else:
                effects += collection.send_due(now, self._rng)
                return

    def _close(
        self, running: RunningJob, share: JobShare, now: Now, effects: list[JobEffect]
    ) -> None:
        job = running.job
        lost, opens = "", running.attempt == 0
        if opens:
            running.freeze(share)
        else:
            lost = running.drop_absent(share)
        if why := running.objection(lost):
            self._fail(running, why, now, effects)
            return
        if opens or (lost and job.exact):
            running.begin()
        elif not self._went_on(running, share, now, effects):
            return
        ask = running.next_ask()
        try:
            running.collection = self._collect(ask, running.kind, now)
        except UsageError as error:
            self._fail(running, str(error), now, effects)
            return
        members = roster.size(running.stayed)
        effects.append(JobProgress(job.id, ask.phase, running.rounds + 1, running.attempt, members))

    def _went_on(
        self, running: RunningJob, share: JobShare, now: Now, effects: list[JobEffect]
    ) -> bool:
        """Take a round's result; return whether there is another round."""
        try:
            answer = running.take(share.arrays)
        except Exception as error:  # whatever it is, it costs one share if it is one's
            why, collection = reason_of(error), running.collection
            blamed = collection.culprit(running.following)
            if blamed is None:
                self._fail(running, why, now, effects)
                return False
            collection.leave_out(blamed, f"no round follows from what it contributed: {why}")
            self._close(running, collection.share(), now, effects)
            return False
        if answer is None and running.rounds >= running.job.rounds:
            self._fail(running, f"no answer after {running.rounds} rounds", now, effects)
            return False
        if answer is not None:
            self._end(running, running.outcome(answer, ""), now, effects)
        return answer is None

    def _fail(self, running: RunningJob, why: str, now: Now, effects: list[JobEffect]) -> None:
        self._end(running, running.outcome(None, why), now, effects)

    def _end(
        self, running: RunningJob, outcome: JobOutcome, now: Now, effects: list[JobEffect]
    ) -> None:
        """End a job, and let those below know for a while."""
        job = running.job
        del self._running[job.id]
        # A root that dies in between says later that the job failed: the first outcome counts.
        effects += [JobEnded(outcome), Keep({_key(job.id): None})]
        place = running.opened or None
        arrays = outcome.answer or {}
        ask = JobAsk(
            *(job, running.turn + 1, job.round_s, place, ENDED, arrays),
            *(running.attempt, running.rounds, outcome.failure),
        )
        try:
            ending = self._collect(ask, None, now)
        except UsageError:
            # The answer is too large to go down: those below forget the job in time.
            return
        if ending.children:
            self._ending[job.id] = ending
            effects += ending.send_due(now, self._rng)


class RunningJob:
    """A job that is under way at its root, in its attempt, from 1, after so many closed rounds."""

    def __init__(
        self, job: Job, kind: JobKind, ask: JobAsk, collection: ShareCollection, now: Now
    ) -> None:
        self.job, self.kind, self.collection = job, kind, collection
        self.ends_at = now.steady + job.job_s
        self.turn = ask.turn
        self.attempt = self.rounds = 0
        self.opened: Roster = {}
        self.stayed: Roster = {}
        self._left: dict[str, Leaver] = {}
        self._declined: Mapping[str, str] = {}
        self._state: Any = None
        self._down = PhaseDown(OPENING, {})

    @property
    def wakes_at(self) -> float:
        return min(self.ends_at, self.collection.wakes_at)

    def freeze(self, share: JobShare) -> None:
        """Freeze the participants: those that have answered."""
        place = share.place
        self.opened = {} if not isinstance(place, Mapping) else roster.without_repeats(place)
        self.stayed = self.opened
        if not self.job.least:
            self.job = replace(self.job, least=roster.size(self.opened) // 2 + 1)
        names = roster.names(self.opened)
        self._declined = {name: why for name, why in share.left.items() if name not in names}

    def begin(self) -> None:
        self.attempt, self.rounds = self.attempt + 1, 0
        self._state, self._down = self.kind.first()

    def drop_absent(self, share: JobShare) -> str:
        """Drop participants that are not in a share; return who and why, empty for none."""
        held = roster.names(share.place)
        absent = sorted(roster.names(self.stayed) - held)
        for name in absent:
            counts = 0 if self.job.exact else self.rounds
            self._left[name] = Leaver(share.left.get(name, "silent"), counts)
        self.stayed = roster.pruned(self.stayed, held)
        return ", ".join(f"{name} ({self._left[name].why})" for name in absent[:3])

    def objection(self, lost: str) -> str:
        """Return why the job cannot go on after it has lost participants; empty if it can."""
        job, members = self.job, roster.size(self.stayed)
        if not members:
            return f"no participant stayed, at last {lost}" if lost else _no_one(self._declined)
        if members < job.least:
            return f"{members} participants stayed, {job.least} needed"
        if lost and job.exact and self.attempt == job.attempts:
            return f"participants left in each of {job.attempts} attempts, at last {lost}"
        return ""

    def take(self, up: Arrays) -> Arrays | None:
        """Take what a round has given; return the answer if that is it, or raise UsageError."""
        self.kind, result = self.following(up)
        self.rounds += 1
        if isinstance(result, JobAnswer):
            return result.arrays
        self._state, self._down = result
        return None

    def following(self, up: Arrays) -> tuple[JobKind, tuple[Any, PhaseDown] | JobAnswer]:
        """Return the round that follows, and the kind that remembers it; participants take it."""
        kind = copy(self.kind)
        # What a kind computes from extreme numbers it refuses, or it is no finite answer.
        with np.errstate(all="ignore"):
            result = kind.next(self._state, self._down, up)
        check_finite(result.arrays if isinstance(result, JobAnswer) else result[1].arrays)
        if not isinstance(result, JobAnswer):
            kind.check_down(result[1])
        return kind, result

    def next_ask(self) -> JobAsk:
        self.turn += 1
        return JobAsk(
            *(self.job, self.turn, self.job.round_s, self.stayed),
            *(self._down.phase, self._down.arrays, self.attempt, self.rounds),
        )

    def outcome(self, answer: Arrays | None, failure: str) -> JobOutcome:
        return JobOutcome(
            *(self.job, answer, failure, self.opened, self.stayed),
            *(dict(self._left), dict(self._declined), self.rounds, self.attempt),
        )


def _no_one(declined: Mapping[str, str]) -> str:
    """Return that no node takes part, and the commonest reasons; those below learn no names."""
    if not declined:
        return "no node takes part: none reports for the group now"
    whys = Counter(why[:MOST_REASON] for why in declined.values()).most_common(REASONS)
    return "no node takes part: " + "; ".join(f"{why} ({nodes})" for why, nodes in whys)


def _key(job: str) -> Key:
    return RECORD, job


def _lost(kept: Records) -> list[JobEffect]:
    """Return the end of the jobs that an earlier process had under way."""
    effects: list[JobEffect] = []
    for key, record in sorted(kept.items()):
        if key[0] != RECORD:
            continue
        try:
            job = Job.read(json.loads(record))
            outcome = JobOutcome(job, None, ROOT_RESTARTED, {}, {}, {}, {}, 0, 0)
            effects.append(JobEnded(outcome))
        except (PeerError, ValueError) as error:
            effects.append(Note("job record unreadable", {"job": key[-1], "why": str(error)}))
        effects.append(Keep({key: None}))
    return effects
