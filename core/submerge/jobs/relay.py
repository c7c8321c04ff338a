"""JobRelay: an aggregator between: asks go down, shares are merged up, and nothing is on disk."""

from __future__ import annotations

import math
from collections import deque

from submerge.errors import PeerError, UsageError
from submerge.jobs import roster
from submerge.jobs.collection import ShareCollection, refusal
from submerge.jobs.envelopes import ENDED, OPENING, JobAsk, JobShare
from submerge.jobs.kind import JobKind
from submerge.jobs.kinds import kind_of
from submerge.jobs.link import JobLink
from submerge.jobs.machine import (
    ChildrenKnown,
    JobEffect,
    JobEnded,
    JobEvent,
    JobHeard,
    JobPiece,
    JobPieceTaken,
    JobTimes,
    KnownChildren,
)
from submerge.jobs.member import MOST_JOBS, REMEMBERED, heard_outcome, not_from_parent, passed_over
from submerge.protocol.machine import Note, Now, Start
from submerge.protocol.messages import Incarnation
from submerge.protocol.names import RandomSource


class JobRelay:
    """An aggregator's part in jobs, if it has a parent."""

    incarnation: Incarnation

    def __init__(self, node: str, rng: RandomSource, times: JobTimes | None = None) -> None:
        self.node, self._rng, self._times = node, rng, times or JobTimes()
        self._children = KnownChildren()
        self._relayed: dict[str, _Relayed] = {}
        self._over = deque[str](maxlen=REMEMBERED)

    @property
    def wakes_at(self) -> float:
        """When a `Tick` may change something."""
        return min((each.wakes_at for each in self._relayed.values()), default=math.inf)

    @property
    def held_bytes(self) -> int:
        return sum(each.held_bytes for each in self._relayed.values())

    @property
    def jobs(self) -> tuple[str, ...]:
        return tuple(self._relayed)

    def step(self, event: JobEvent, now: Now) -> list[JobEffect]:
        effects: list[JobEffect] = []
        match event:
            case Start():
                self.incarnation = Incarnation.draw(now.wall_ms, 0, self._rng)
            case ChildrenKnown():
                self._children.learn(event)
            case JobHeard(JobPiece() as piece, sender, from_parent):
                if piece.up:
                    self._take_share(piece, sender, now, effects)
                elif from_parent:
                    self._take_ask(piece, sender, now, effects)
                else:
                    effects.append(not_from_parent(piece.job, sender))
            case JobHeard(JobPieceTaken() as taken, sender, from_parent):
                self._take_taken(taken, sender, now, effects, from_parent=from_parent)
        for name in list(self._relayed):
            self._advance(name, now, effects)
        return effects

    def _take_ask(self, piece: JobPiece, sender: str, now: Now, effects: list[JobEffect]) -> None:
        relayed = self._relayed.get(piece.job)
        if relayed is None:
            full = len(self._relayed) >= MOST_JOBS
            if full or piece.job in self._over:
                effects.append(passed_over(piece, sender, self.incarnation, over=full))
                return
            link = JobLink(self.node, self.incarnation, self._times, now)
            relayed = self._relayed[piece.job] = _Relayed(link)
        ask = relayed.link.take(piece, sender, now.steady, effects)
        if ask is None:
            return
        try:
            known, kind = self._children.of(ask.job.group), _kind_for(ask, relayed)
            collection = ShareCollection(ask, known, kind, self.incarnation, self._times, now)
        except (UsageError, PeerError) as error:
            relayed.collection = None
            left = dict.fromkeys(roster.names(ask.place, self.node), str(error))
            relayed.link.answer(ask, JobShare(None, left, {}))
            return
        relayed.collection = collection
        relayed.changed = not collection.children
        if ask.phase == ENDED:
            effects.append(JobEnded(heard_outcome(ask)))

    def _take_share(self, piece: JobPiece, sender: str, now: Now, effects: list[JobEffect]) -> None:
        if piece.stamp.node != sender:
            effects.append(Note("job message ignored", {"job": piece.job, "sender": sender}))
            return
        relayed = self._relayed.get(piece.job)
        if relayed is None or relayed.collection is None:
            # After a restart the parent asks again; until then nothing is known here.
            if piece.job in self._over:
                effects.append(refusal(piece, self.incarnation))
            return
        more, changed = relayed.collection.take_piece(sender, piece)
        effects += more
        relayed.changed |= changed

    def _take_taken(
        self,
        taken: JobPieceTaken,
        sender: str,
        now: Now,
        effects: list[JobEffect],
        *,
        from_parent: bool,
    ) -> None:
        relayed = self._relayed.get(taken.job)
        if relayed is None:
            return
        if taken.up and from_parent:
            if taken.over:
                if relayed.link.ends_with(taken):
                    del self._relayed[taken.job]
                return
            effects += relayed.link.take_taken(taken, now, self._rng)
        elif not taken.up and relayed.collection is not None and taken.stamp.node == sender:
            effects += relayed.collection.take_taken(sender, taken, now, self._rng)

    def _advance(self, name: str, now: Now, effects: list[JobEffect]) -> None:
        relayed = self._relayed[name]
        collection = relayed.collection
        if relayed.link.expires_at <= now.steady:
            del self._relayed[name]
            effects.append(Note("job given up", {"job": name}))
            return
        if collection is not None:
            closes = collection.complete or collection.closes_at <= now.steady
            if collection.ask.phase == ENDED:
                if closes:
                    del self._relayed[name]
                    self._over.append(name)
                    return
            elif closes and (relayed.changed or not relayed.closed):
                # Late shares replace what went up, as long as the turn lasts above.
                relayed.link.answer(collection.ask, collection.share())
                relayed.changed, relayed.closed = False, True
            effects += collection.send_due(now, self._rng)
        effects += relayed.link.send_due(now, self._rng)


class _Relayed:
    def __init__(self, link: JobLink) -> None:
        self.link = link
        self.kind: JobKind | None = None
        self._collection: ShareCollection | None = None
        self.changed = self.closed = False

    @property
    def collection(self) -> ShareCollection | None:
        return self._collection

    @collection.setter
    def collection(self, collection: ShareCollection | None) -> None:
        self._collection, self.changed, self.closed = collection, False, False

    @property
    def wakes_at(self) -> float:
        if self._collection is None:
            return self.link.wakes_at
        sends_at, closes_at = self._collection.sends_at, self._collection.closes_at
        return min(self.link.wakes_at, sends_at, math.inf if self.closed else closes_at)

    @property
    def held_bytes(self) -> int:
        held = 0 if self._collection is None else self._collection.held_bytes
        return held + self.link.held_bytes


def _kind_for(ask: JobAsk, relayed: _Relayed) -> JobKind | None:
    """Return the one kind that merges the shares of a job; None where there is nothing to merge."""
    if ask.phase in (OPENING, ENDED):
        return None
    relayed.kind = relayed.kind or kind_of(ask.job)
    relayed.kind.check_down(ask.down)
    return relayed.kind
