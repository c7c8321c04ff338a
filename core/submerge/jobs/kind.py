"""JobKind: what a job computes, as pure functions; the machine does not know what they mean.

A job goes through rounds. In each the root sends something down (`PhaseDown`), every participant
answers with arrays, parents merge them, and the root goes on to the next round, or has the answer:

    state, down = kind.first()
    memory, up = kind.contribute(memory, down, points, node)    at each participant
    up = kind.merge(down, ups)                                  at each parent, children by name
    state, down = kind.next(state, down, up)                    at the root; or a JobAnswer

Rules for a kind:

1. Equal arguments give equal bytes: random numbers come from `points.draws`, named by the job's
   seed, the node and the row.
2. `merge` is associative and commutative, to rounding; children come in the order of their names.
3. Rounds may differ in form: the phase says which one it is. "open" and "end" are the machine's.
4. Foreign arrays are checked by `check_down` and `check_up`; the other functions trust theirs.
5. `memory` is a participant's own, None in the first round of an attempt. It stays where it is.
6. A row leaves its node as it is only where `points.may_share` allows it, and is counted then.
   An array `nodes` has `points.node_id` of each: parents refuse nodes that are not below the child.
7. A kind may remember what went down to check what comes up by it, and for nothing else: a parent
   that has restarted meanwhile checks less.
8. It lists its settings and its answer (`listed`, `answers`): commands and pages are made of these.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Literal, NamedTuple, Protocol

from submerge._linalg import Array
from submerge.errors import UsageError, whole
from submerge.jobs.arrays import Arrays
from submerge.jobs.job import Settings
from submerge.jobs.points import MOST_HELD_OUT, JobPoints, held_out_of, seed_of
from submerge.jobs.roster import MOST_MEMBERS


class PhaseDown(NamedTuple):
    """What a round begins with."""

    phase: str  # which of the kind's forms the round has
    arrays: Arrays  # for every participant, the same for all


class JobAnswer(NamedTuple):
    """What a job has found."""

    arrays: Arrays


class JobKind(Protocol):
    """A kind of job, with its settings."""

    def first(self) -> tuple[Any, PhaseDown]:
        """Return the root's state and the first round."""

    def contribute(
        self, memory: Any, down: PhaseDown, points: JobPoints, node: str
    ) -> tuple[Any, Arrays]:
        """Return a participant's memory for later rounds, and its contribution to this one."""

    def bytes_for(self, rows: int) -> int:
        """Return how many bytes a participant with so many rows needs in any round, at most."""

    def points_in(self, down: PhaseDown, up: Arrays) -> int:
        """Return how many rows a contribution holds as they are: at most `points.may_share`."""

    def merge(self, down: PhaseDown, ups: Sequence[Arrays]) -> Arrays:
        """Return the contribution of several children, one or more, as if they were one."""

    def spread(self, down: PhaseDown, up: Arrays) -> Array | None:
        """Return what settles a scale for all, none negative; None if the round settles none."""

    def next(self, state: Any, down: PhaseDown, up: Arrays) -> tuple[Any, PhaseDown] | JobAnswer:
        """Return the next round, or the answer, from all contributions; UsageError if none."""

    def check_down(self, down: PhaseDown) -> None:
        """Raise `PeerError` if no root of this version sends that."""

    def check_up(self, down: PhaseDown, up: Arrays, clients: int = MOST_MEMBERS) -> None:
        """Raise `PeerError` if no child of this version answers that, for so many clients.

        Also for what rows cannot have: else one client would decide what goes down to all.
        """


class OfSums:
    """What holds of a kind that shares no row as it is, and settles no scale."""

    def points_in(self, down: PhaseDown, up: Arrays) -> int:
        return 0

    def spread(self, down: PhaseDown, up: Arrays) -> Array | None:
        return None


SettingForm = Literal["whole", "number", "text", "flag"]

AnswerForm = Literal["rows", "squares", "plain"]
"""What the numbers of an array are: places in the space of the rows, (..., width); their squares,
as variances are; or anything else, such as counts."""


class JobSetting(NamedTuple):
    """A setting of a kind of job, for people."""

    # as in `Job.settings`
    name: str
    form: SettingForm
    meaning: str  # in a line
    default: str = ""  # in words; empty if the setting is needed


class AnswerArray(NamedTuple):
    """An array of a kind's answer, for people."""

    name: str
    meaning: str  # in a line
    form: AnswerForm = "plain"


class MakeKind(Protocol):
    """Makes a kind: a class that lists its settings, but for those that all kinds know."""

    @property
    def listed(self) -> tuple[JobSetting, ...]:
        """Its settings; one without a default first."""

    @property
    def answers(self) -> tuple[AnswerArray, ...]:
        """The arrays of its answer."""

    def __call__(self, settings: Settings, width: int, /) -> JobKind:
        """Return the kind with a job's settings, for rows of a width; UsageError if wrong."""


COMMON_SETTINGS = (
    JobSetting("seed", "whole", "Names all random numbers: equal seeds give equal answers.", "0"),
    JobSetting(
        "held_out",
        "number",
        f"Share of rows to measure on and not to learn from, to {MOST_HELD_OUT:g}.",
        "0",
    ),
)
"""Settings that all kinds know, as they list their own."""

KEEP = JobSetting(
    "keep",
    "flag",
    "Whether clients keep the answer, and say in their score lines to which cluster a row belongs.",
    "no",
)
"""A setting of kinds whose answer has clusters: `membership.ClusterMembership`."""

COMMON = tuple(each.name for each in COMMON_SETTINGS)


def check_known(settings: Settings, names: Iterable[str]) -> None:
    """Refuse a setting that is not one of the names, nor common to all kinds, and common ones."""
    seed_of(settings), held_out_of(settings)
    known = (*COMMON, *names)
    for name in settings:
        if name not in known:
            raise UsageError(f"settings are {', '.join(known)}, got {name[:40]!r}")


def whole_of(settings: Settings, name: str, default: int, *, least: int, most: int) -> int:
    return whole(name, settings.get(name, default), least=least, most=most)


def number_of(settings: Settings, name: str, default: float, *, most: float) -> float:
    """Return a number of the settings, from 0 to `most`."""
    value = settings.get(name, default)
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= most:
        raise UsageError(f"{name} must be a number from 0 to {most:g}, got {value!r}")
    return float(value)


def flag_of(settings: Settings, name: str, *, default: bool = False) -> bool:
    value = settings.get(name, default)
    if not isinstance(value, bool):
        raise UsageError(f"{name} must be true or false, got {value!r}")
    return value
