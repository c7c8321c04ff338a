"""What operators see of jobs: plain values for JSON and tables, read back by the commands."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, NamedTuple

JobState = Literal["running", "done", "failed"]

Plain = int | float | str | bool | None
"""A value of a job's settings."""


@dataclass(frozen=True, slots=True)
class JobView:
    """One job, in a line.

    phase : Of the round under way; "open" while participants are asked; empty once it is over.
    round, attempt : From 1; 0 while it opens. Of a job that is over: how many there were.
    members : Participants that are in it; of an answer, whose rows it is of.
    left, declined : Participants that did not stay, nodes that took no part; 0 while it runs.
    opened_s, ended_s : Unix seconds; 0 for not yet.
    """

    id: str
    group: str
    kind: str
    settings: dict[str, Plain]
    exact: bool
    least: int
    state: JobState
    phase: str
    round: int
    attempt: int
    members: int
    left: int
    declined: int
    opened_s: float
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
