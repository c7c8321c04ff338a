"""What operators see of jobs: plain values for JSON and tables, read back by the commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

JobState = Literal["running", "done", "failed"]

Plain = int | float | str | bool | None  # a value of a job's settings


@dataclass(frozen=True, slots=True)
class JobView:
    id: str
    group: str
    kind: str
    settings: dict[str, Plain]
    exact: bool
    least: int
    state: JobState
    phase: str  # of the round under way; "open" at first; empty once it is over
    round: int  # from 1; 0 while it opens
    attempt: int
    members: int  # participants that are in it; of an answer, whose rows it is of
    left: int  # participants that did not stay; 0 while it runs
    declined: int  # nodes that took no part
    opened_s: float  # Unix; 0 for not yet, as `ended_s`
    ended_s: float
    failure: str = ""


class LeftView(NamedTuple):
    """Why a participant left, and in how many rounds of the answer it counts."""

    why: str
    rounds: int


@dataclass(frozen=True, slots=True)
class JobDetails:
    """One job with its nodes by name; none while it runs."""

    job: JobView
    stayed: tuple[str, ...] = ()
    left: dict[str, LeftView] = field(default_factory=dict)
    declined: dict[str, str] = field(default_factory=dict)
