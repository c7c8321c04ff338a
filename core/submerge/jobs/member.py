"""JobMember: a client in jobs: it holds bounded points, and contributes when its parent asks.

What it contributes to a turn is made once. It is sent until the parent has it, and again to another
process of the parent.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable
from typing import Any

from submerge.errors import UsageError
from submerge.jobs.collection import reason_of
from submerge.jobs.envelopes import ENDED, OPENING, JobAsk, JobShare
from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.kind import JobKind
from submerge.jobs.kinds import is_masked, kind_of
from submerge.jobs.link import JobLink
from submerge.jobs.machine import (
    JobEffect,
    JobEnded,
    JobEvent,
    JobHeard,
    JobPiece,
    JobPieceTaken,
    JobTimes,
    SendJob,
)
from submerge.jobs.masks import Masking
from submerge.jobs.parcels import all_of
from submerge.jobs.points import RECORD, HeldRows, JobPoints, PointBudget, split
from submerge.protocol.machine import Keep, Note, Now, Start
from submerge.protocol.messages import Incarnation
from submerge.protocol.names import RandomSource

MOST_JOBS = 4
"""Jobs that a node takes part in at once."""

REMEMBERED = 64
"""Jobs that are over, by id: what comes late of them opens nothing."""

RESTARTED = "restarted"
"""Why a process has no part that was not there when the job opened."""

Source = Callable[[Job], HeldRows | str]
"""Returns the rows of a job's group, or why there are none for it."""


class JobMember:
    """A client's part in jobs; without a budget no row is shared. `room`: bytes for all of them."""

    incarnation: Incarnation

    def __init__(
        self,
        node: str,
        source: Source,
        rng: RandomSource,
        *,
        budget: PointBudget | None = None,
        room: Callable[[], float] = lambda: math.inf,
        masking: Masking | str = "it has no keys to mask sums with",
    ) -> None:
        self.node, self._source, self._rng, self._room = node, source, rng, room
        self._masking = masking
        self.budget = PointBudget(0) if budget is None else budget
        self._times = JobTimes()
        self._parts: dict[str, _Part] = {}
        self._over, self._left = (deque[str](maxlen=REMEMBERED) for _ in range(2))

    @property
    def wakes_at(self) -> float:
        """When a `Tick` may change something."""
        return min((part.link.wakes_at for part in self._parts.values()), default=math.inf)

    @property
    def held_bytes(self) -> int:
        return sum(part.held_bytes for part in self._parts.values())

    @property
    def jobs(self) -> tuple[str, ...]:
        return tuple(self._parts)

    def step(self, event: JobEvent, now: Now) -> list[JobEffect]:
        effects: list[JobEffect] = []
        match event:
            case Start(kept):
                self.incarnation = Incarnation.draw(now.wall_ms, 0, self._rng)
                self.budget.load(kept.get(RECORD), now)
            case JobHeard(message, sender, from_parent) if not from_parent:
                effects.append(not_from_parent(message.job, sender))
            case JobHeard(JobPiece() as piece, sender, _) if not piece.up:
                self._take_piece(piece, sender, now, effects)
            case JobHeard(JobPieceTaken() as taken, _, _) if taken.up:
                self._take_taken(taken, now, effects)
        for name, part in list(self._parts.items()):
            if part.link.expires_at <= now.steady:
                del self._parts[name]
                self._left.append(name)
                effects.append(Note("job given up", {"job": name}))
                continue
            effects += part.link.send_due(now, self._rng)
        return effects

    def _take_taken(self, taken: JobPieceTaken, now: Now, effects: list[JobEffect]) -> None:
        part = self._parts.get(taken.job)
        if part is None:
            return
        if taken.over:
            if part.link.ends_with(taken):
                # The parent goes on without this node, which may still hear how the job ends.
                del self._parts[taken.job]
                self._left.append(taken.job)
            return
        effects += part.link.take_taken(taken, now, self._rng)

    def _take_piece(self, piece: JobPiece, sender: str, now: Now, effects: list[JobEffect]) -> None:
        part = self._parts.get(piece.job)
        if part is None:
            full = len(self._parts) >= MOST_JOBS
            # An opening that comes late must not freeze other points.
            reopens = piece.job in self._left and piece.stamp.seq == 0
            if full or reopens or piece.job in self._over:
                effects.append(passed_over(piece, sender, self.incarnation, over=full))
                return
            link = JobLink(self.node, self.incarnation, self._times, now)
            part = self._parts[piece.job] = _Part(link)
        ask = part.link.take(piece, sender, now.steady, effects)
        if ask is None:
            return
        if ask.phase == ENDED:
            del self._parts[piece.job]
            self._over.append(piece.job)
            effects.append(JobEnded(heard_outcome(ask)))
            return
        part.link.answer(ask, self._share(part, ask, now, effects))

    def _share(self, part: _Part, ask: JobAsk, now: Now, effects: list[JobEffect]) -> JobShare:
        """Return what this node contributes to a turn, or why it does not."""
        if ask.phase == OPENING:
            part.why = self._open(part, ask.job)
        elif ask.place != self.incarnation or part.kind is None or part.points is None:
            part.why = part.why or RESTARTED
        if part.why or part.kind is None or part.points is None:
            return JobShare(None, {self.node: part.why}, {})
        if ask.phase == OPENING:
            return JobShare(self.incarnation, {}, {})
        if (ask.attempt, ask.round) != part.expected:
            # As many as at the opening, when they were counted.
            begins = ask.round == 0 and part.expected[0] < ask.attempt <= part.attempts
            part.why = "" if begins else RESTARTED
            if not begins:
                return JobShare(None, {self.node: part.why}, {})
            part.memory = None
        try:
            part.kind.check_down(ask.down)
            left = self.budget.left(now)
            points = part.points._replace(may_share=left, masking=self._masking)
            part.memory, up = part.kind.contribute(part.memory, ask.down, points, self.node)
            if shared := part.kind.points_in(ask.down, up):
                # Before they are sent: the pieces come after this effect.
                effects.append(Keep({RECORD: self.budget.spend(shared, now)}))
                effects.append(Note("readings shared", {"job": ask.job.id, "readings": shared}))
        except Exception as error:  # whatever it is, it costs this job alone
            part.why = f"what it was asked was refused: {reason_of(error)}"
            return JobShare(None, {self.node: part.why}, {})
        part.expected = ask.attempt, ask.round + 1
        return JobShare(self.incarnation, {}, up)

    def _open(self, part: _Part, job: Job) -> str:
        """Freeze the points for a job; return why there are none."""
        try:
            part.kind = kind_of(job)
        except UsageError as error:
            return str(error)
        if is_masked(job.settings) and isinstance(self._masking, str):
            return self._masking
        held = self._source(job)
        if isinstance(held, str):
            return held
        if held.fingerprint != job.fingerprint or held.rows.shape[1:] != (job.width,):
            return "another schema"
        needs = part.kind.bytes_for(len(held.rows))
        room = self._room() - sum(each.needs for each in self._parts.values())
        if needs > room:
            mib = (f"{max(0.0, each) / 2**20:,.0f} MiB" for each in (needs, room))
            return "it would need {} of memory, and {} are free for jobs".format(*mib)
        part.needs, part.attempts = needs, job.attempts
        part.points = split(held.rows, job.settings, held.order)
        return ""


class _Part:
    def __init__(self, link: JobLink) -> None:
        self.link = link
        self.kind: JobKind | None = None
        self.points: JobPoints | None = None
        self.memory: Any = None
        self.needs, self.attempts = 0, 0  # bytes; most
        self.expected = (1, 0)  # the attempt and the round that come next
        self.why = ""

    @property
    def held_bytes(self) -> int:
        points = self.points
        held = 0 if points is None else points.rows.nbytes + points.held_out.nbytes
        return held + self.link.held_bytes


def not_from_parent(job: str, sender: str) -> Note:
    """Return the note that another node than the parent has sent what only a parent sends."""
    return Note("job message ignored", {"job": job, "sender": sender, "why": "not the parent"})


def passed_over(piece: JobPiece, sender: str, me: Incarnation, *, over: bool) -> SendJob:
    """Return the answer to an ask that is not taken: its job is over, or one too many."""
    stamp, have = piece.stamp._replace(incarnation=me), all_of(piece.total)
    return SendJob(sender, JobPieceTaken(stamp, piece.job, False, piece.parcel, have, over))


def heard_outcome(ask: JobAsk) -> JobOutcome:
    """Return the outcome as those below a root hear of it: without the others' names."""
    answer = None if ask.failure else ask.arrays
    return JobOutcome(ask.job, answer, ask.failure, {}, {}, {}, {}, ask.round, ask.attempt)
