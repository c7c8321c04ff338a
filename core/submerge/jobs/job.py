"""Job: what is to be computed, in which group, and how long it may take; and its outcome."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from submerge.errors import PeerError, UsageError, whole
from submerge.jobs.arrays import Arrays
from submerge.jobs.roster import MOST_MEMBERS, Roster
from submerge.protocol.names import NAME_RULE, is_name

Settings = Mapping[str, int | float | str | bool | None]
"""Settings of a kind of job, by name. Each kind says which it knows."""

MOST_SETTINGS = 4096
"""Bytes of all settings as JSON."""

LEAST_PIECE, MOST_PIECE, MOST_PIECES = 256, 1 << 20, 4096
"""Bytes of a piece, and pieces of a payload."""

MOST_PAYLOAD = 64 << 20
"""Bytes of a payload, whatever a job allows."""

LONGEST_S = 7 * 86400.0
MOST_ROUNDS, MOST_WIDTH = 10_000, 1 << 20


@dataclass(frozen=True, slots=True)
class Job:
    """One computation in rounds. It is data: each participant gets all of it."""

    id: str  # no two jobs have one, ever
    kind: str  # a name in `kinds.KINDS`
    settings: Settings = field(default_factory=dict)  # of the kind; "seed", "held_out" of all
    group: str = ""
    fingerprint: str = ""  # of the group's schema
    width: int = 1  # of its rows
    open_s: float = 60.0  # to take part; of all times each level below has three quarters
    round_s: float = 60.0
    job_s: float = 3600.0
    exact: bool = True  # without a participant that leaves, the job begins again
    attempts: int = 8  # of an exact job, at most
    rounds: int = 500  # of an attempt, at most
    least: int = 0  # fewer participants are a failure; 0: more than half have to stay
    # A piece and what is around it have to fit the smallest limit of a parent, 64 KiB in a narrow
    # group, and that of a broker.
    piece_bytes: int = 48 << 10
    payload_bytes: int = 16 << 20

    def __post_init__(self) -> None:
        for name in ("id", "kind", "group"):
            if not is_name(value := getattr(self, name)):
                raise UsageError(f"{name} must have {NAME_RULE}, got {value[:80]!r}")
        if not re.fullmatch(r"[0-9a-f]{64}", self.fingerprint):
            raise UsageError(f"fingerprint must be 64 hex digits, got {self.fingerprint[:80]!r}")
        for name in ("open_s", "round_s", "job_s"):
            if not 0.0 < (seconds := getattr(self, name)) <= LONGEST_S:
                raise UsageError(f"{name} must be over 0 and at most {LONGEST_S:g}, got {seconds}")
        whole("width", self.width, least=1, most=MOST_WIDTH)
        whole("attempts", self.attempts, least=1, most=1000)
        whole("rounds", self.rounds, least=1, most=MOST_ROUNDS)
        whole("least", self.least, least=0, most=MOST_MEMBERS)
        whole("piece_bytes", self.piece_bytes, least=LEAST_PIECE, most=MOST_PIECE)
        whole("payload_bytes", self.payload_bytes, least=LEAST_PIECE, most=MOST_PAYLOAD)
        if not _plain(self.settings) or len(json.dumps(dict(self.settings))) > MOST_SETTINGS:
            raise UsageError(f"settings must be plain values, {MOST_SETTINGS} bytes at most")

    def written(self) -> dict[str, Any]:
        value = {each.name: getattr(self, each.name) for each in fields(self)}
        return value | {"settings": dict(self.settings)}

    @classmethod
    def read(cls, value: Any) -> Job:
        """Return the job that values of JSON name, later fields passed over; PeerError if none."""
        if not isinstance(value, dict):
            raise PeerError("a job is a mapping")
        known = {each.name: each for each in fields(cls) if each.name in value}
        if not {"id", "kind", "group", "fingerprint"} <= set(known):
            raise PeerError("a job has an id, a kind, a group and a fingerprint")
        given: dict[str, Any] = {name: value[name] for name in known}
        for name, each in given.items():
            kinds = _TYPES[str(known[name].type)]
            if type(each) not in kinds:
                raise PeerError(f"{name} of a job: got {type(each).__name__}")
        try:
            seconds = {n: float(v) for n, v in given.items() if n.endswith("_s")}
            return cls(**given | seconds)
        except (UsageError, OverflowError) as error:
            raise PeerError(str(error), kind="range") from error


_TYPES: dict[str, tuple[type, ...]] = {
    "str": (str,),
    "int": (int,),
    "float": (int, float),
    "bool": (bool,),
    "Settings": (dict,),
}


def _plain(settings: Settings) -> bool:
    """Return whether settings are values that JSON keeps as they are."""
    return all(
        isinstance(name, str)
        and (value is None or isinstance(value, str | int | float))
        and (not isinstance(value, float) or math.isfinite(value))
        for name, value in settings.items()
    )


class Leaver(NamedTuple):
    """A participant that did not stay."""

    why: str  # "silent", "restarted", or what it, or its parent, said
    rounds: int  # rounds of the answer that it counts in; 0 in an exact job


@dataclass(frozen=True, slots=True, eq=False)
class JobOutcome:
    """How a job ended."""

    job: Job
    answer: Arrays | None  # None if it failed; then `failure` says why
    failure: str
    opened: Roster  # all participants: who answered when it opened
    # whose points the answer is of: participants that contributed to every round of it
    stayed: Roster
    left: Mapping[str, Leaver]  # the other participants, by name
    # nodes that were asked and took no part, and why: they never were participants
    declined: Mapping[str, str]
    # rounds of the answer, and how often the job began
    rounds: int
    attempts: int
