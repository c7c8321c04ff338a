"""Broken rules of jobs, each by name: what takes the place of which function.

The simulator has to notice each of them (tests/core/jobs/test_job_mutants.py).
"""

from __future__ import annotations

from collections import deque
from dataclasses import replace
from typing import Any

from submerge.jobs import member, relay, roster
from submerge.jobs.collection import ShareCollection
from submerge.jobs.job import Leaver
from submerge.jobs.link import JobLink
from submerge.jobs.member import JobMember
from submerge.jobs.parcels import IncomingParcel, OutgoingParcel
from submerge.jobs.root import JobRoot, RunningJob

Patch = tuple[Any, str, Any]

_share_of_all = ShareCollection.share
_take_piece = ShareCollection.take_piece
_share = JobMember._share
_drop_absent = RunningJob.drop_absent
_outcome = RunningJob.outcome
_end = JobRoot._end
_opened_by = JobMember._open
_begin = RunningJob.begin


def merges_as_they_came(self):
    """Shares are merged in the order in which they arrived."""
    names = list(self._shares)
    first = [name for name in names if name in self.children]
    order = [*first, *(name for name in self.children if name not in self._shares)]
    children, self.children = self.children, _Ordered(order)
    try:
        return _share_of_all(self)
    finally:
        self.children = children


class _Ordered(list):
    """A list that `sorted` leaves as it is."""

    def __iter__(self):
        return (_Key(name, at) for at, name in enumerate(list.__iter__(self)))


class _Key(str):
    """A name that sorts by its place."""

    def __new__(cls, name, at):
        made = super().__new__(cls, name)
        made.at = at
        return made

    def __lt__(self, other):
        return self.at < other.at

    __hash__ = str.__hash__

    def __eq__(self, other):
        return str.__eq__(self, other)


def adds_what_comes_again(self, child, piece):
    """A share that comes twice is added to what is there."""
    held = self._shares.get(child)
    if held and held.arrays and piece.total == 1 and piece.stamp.seq == self.ask.turn:
        twice = self._kind.merge(self.ask.down, [held.arrays, held.arrays])
        self._shares[child] = replace(held, arrays=twice)
    return _take_piece(self, child, piece)


def takes_any_turn(self, child, piece):
    """A share of an earlier turn is taken for this one."""
    if child in self.children and piece.stamp.seq < self.ask.turn and piece.up:
        piece = piece._replace(stamp=piece.stamp._replace(seq=self.ask.turn))
    return _take_piece(self, child, piece)


def trusts_the_name(self):
    """The content of a parcel is not held against its name."""
    return b"".join(self._pieces[i] for i in range(self._total))


def takes_part_again(self, part, ask, now, effects):
    """A process that was not there takes part with what it has now."""
    if ask.place is not None and ask.phase != "end":
        if part.points is None:
            part.why = _opened_by(self, part, ask.job)
        part.expected = ask.attempt, ask.round
        ask = replace(ask, place=self.incarnation)
    return _share(self, part, ask, now, effects)


def says_what_is_expected(self, ask, share):
    """A process contributes in the name of the one that was there before it."""
    if share.place is not None and ask.place is not None:
        share = replace(share, place=ask.place)
    return _answer(self, ask, share)


_answer = JobLink.answer


def asks_for_rows_each_time(self, part, ask, now, effects):
    """Points are what the client has now, in every round."""
    if part.kind is not None and part.points is not None and ask.round:
        held = self._source(ask.job)
        part.points = member.split(held.rows, ask.job.settings, held.order)
    return _share(self, part, ask, now, effects)


def goes_on(self, share):
    """An exact job does not begin again."""
    _drop_absent(self, share)
    return ""


def names_no_leaver(self, answer, failure):
    """Who has left is not named."""
    return replace(_outcome(self, answer, failure), left={})


def counts_all_as_stayed(self, answer, failure):
    """Who has left is said to have stayed."""
    return replace(_outcome(self, answer, failure), stayed=self.opened, left={})


def drops_the_slow(self, share):
    """A participant is dropped that is there."""
    held = sorted(roster.names(share.place))
    if self.rounds == 1 and len(held) > 2:
        self._left[held[0]] = Leaver("silent", 0)
    return _drop_absent(self, share)


def forgets_no_job(self, running, outcome, now, effects):
    """Those below do not hear of the end."""
    _end(self, running, outcome, now, effects)
    self._ending.clear()
    effects[:] = [each for each in effects if not hasattr(each, "to")]


def asks_once(self, now, rng):
    """What is lost is not sent again."""
    if self._sent or self.settled:
        self._retry.at = float("inf")
        return
    yield from _send_due(self, now, rng)


_send_due = OutgoingParcel.send_due


REOPENS = type("Reopens", (deque,), {"__contains__": lambda *_: False})


MUTANTS: dict[str, list[Patch]] = {
    "J1' what is lost is not sent again": [(OutgoingParcel, "send_due", asks_once)],
    "J1' a job has no deadline": [
        (RunningJob, "begin", lambda self: (_begin(self), setattr(self, "ends_at", 1e18))[0]),
        (ShareCollection, "closes_at", property(lambda _: 1e18, lambda *_: None)),
    ],
    "J2' merged as they came": [(ShareCollection, "share", merges_as_they_came)],
    "J2' a share of another turn": [
        (ShareCollection, "take_piece", takes_any_turn),
        (IncomingParcel, "body", trusts_the_name),
    ],
    "J2' points are not frozen": [(JobMember, "_share", asks_for_rows_each_time)],
    "J2' an exact job goes on": [(RunningJob, "drop_absent", goes_on)],
    "J2' an opening that comes late": [(each, "deque", REOPENS) for each in (member, relay)],
    "J2' pieces in the order of arrival": [
        (IncomingParcel, "body", lambda self: b"".join(self._pieces.values()))
    ],
    "J3' added and not replaced": [(ShareCollection, "take_piece", adds_what_comes_again)],
    "J4' not told of the end": [(JobRoot, "_end", forgets_no_job)],
    "J5' a new process in the place of the old": [
        (JobMember, "_share", takes_part_again),
        (JobLink, "answer", says_what_is_expected),
    ],
    "J5' leavers are not named": [(RunningJob, "outcome", names_no_leaver)],
    "J5' leavers are said to have stayed": [(RunningJob, "outcome", counts_all_as_stayed)],
    "J5' one too many is dropped": [(RunningJob, "drop_absent", drops_the_slow)],
}
