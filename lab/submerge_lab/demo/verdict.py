"""Alarms compared with the true faults: found, missed, false, and whether the channel is right.

An alarm finds a fault if it starts while the fault holds, or soon after, and names the faulty
mote: one of its three channels is that mote's, with a share of `LEAST` or more. Alarms that
overlap in time are one incident. An incident is false if none of its alarms finds a fault; so is
taking a sound mote out of service.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import asdict, dataclass
from typing import Literal, NamedTuple

from submerge_lab.demo.alarms import (
    LEAST,
    FleetAlarms,
    NamedAlarm,
    RaisedAlarm,
    incidents,
    motes_of,
)
from submerge_lab.plants.room import SNAPSHOT_S, Fault

SOON = round(3600 / SNAPSHOT_S)
"""Snapshots after a fault's end in which it may still be found: an hour, about eight rows of each
of eight clients and the rows on their way."""


class AlarmCounts(NamedTuple):
    """Alarms that clients raised: those that find a fault, others of their incidents, the rest."""

    raised: int
    of_fault: int
    same_time: int
    no_fault: int


@dataclass(frozen=True, slots=True)
class FaultVerdict:
    """A fault, the alarm that found it, or both.

    mote : 0 if an alarm blames none.
    alarm : The mote as the alarm named it.
    first : Whether the fault shows in the channel that the alarm put first.
    """

    mote: int
    outcome: Literal["found", "missed", "false"]
    fault: Fault | None
    alarm: NamedAlarm | None
    first: bool = False

    @property
    def delay_h(self) -> float | None:
        """Hours from the fault's start to the alarm."""
        if self.fault is None or self.alarm is None:
            return None
        return (self.alarm.snapshot - self.fault.start) * SNAPSHOT_S / 3600

    def figures(self) -> dict[str, object]:
        """Return its fields for JSON."""
        return asdict(self) | {"delay_h": self.delay_h}


def match_faults(faults: Iterable[Fault], alarms: FleetAlarms) -> tuple[FaultVerdict, ...]:
    """Match alarms with faults: verdicts of faults in their order, then false incidents."""
    faults = tuple(faults)
    verdicts = [_verdict(fault, alarms.raised) for fault in faults]
    wrong = [
        incident
        for incident in incidents(alarms.raised)
        if not any(_finds(alarm, fault) for alarm in incident for fault in faults)
    ]
    false_alarms = [_first(incident) for incident in wrong]
    for out in alarms.out:
        sound = not any(
            fault.mote == out.mote and fault.start < out.snapshot <= fault.end + SOON
            for fault in faults
        )
        within = any(_began(each) <= out.snapshot <= _over(each) for each in wrong)
        if sound and not within:
            false_alarms.append(out)
    false = sorted(false_alarms, key=lambda each: each.snapshot)
    return (*verdicts, *(FaultVerdict(each.mote, "false", None, each) for each in false))


def count_alarms(verdicts: Iterable[FaultVerdict], raised: Collection[RaisedAlarm]) -> AlarmCounts:
    """Return how many alarms belong to faults, by the rules of this module."""
    faults = [verdict.fault for verdict in verdicts if verdict.fault is not None]
    of_fault = same_time = 0
    for incident in incidents(raised):
        n = sum(any(_finds(alarm, fault) for fault in faults) for alarm in incident)
        of_fault += n
        same_time += len(incident) - n if n else 0
    return AlarmCounts(len(raised), of_fault, same_time, len(raised) - of_fault - same_time)


def _verdict(fault: Fault, raised: Iterable[RaisedAlarm]) -> FaultVerdict:
    alarm = min(
        (each for each in raised if _finds(each, fault)), key=lambda each: each.began, default=None
    )
    if alarm is None:
        return FaultVerdict(fault.mote, "missed", fault, None)
    quantity = next(q for mote, q in motes_of(alarm.blamed) if mote == fault.mote)
    first = motes_of(alarm.blamed)[0]
    right = first[0] == fault.mote and first[1] in fault.quantities
    return FaultVerdict(
        fault.mote, "found", fault, NamedAlarm(fault.mote, quantity, alarm.began), right
    )


def _finds(alarm: RaisedAlarm, fault: Fault) -> bool:
    motes = [mote for mote, _ in motes_of(alarm.blamed, least=LEAST)]
    return fault.mote in motes and fault.start < alarm.began <= fault.end + SOON


def _first(incident: list[RaisedAlarm]) -> NamedAlarm:
    """Return what the first alarm with any blame names; mote 0 if none has."""
    blamed = [each for alarm in incident for each in motes_of(alarm.blamed)]
    mote, quantity = next(iter(blamed), (0, ""))
    return NamedAlarm(mote, quantity, incident[0].began)


def _began(incident: list[RaisedAlarm]) -> float:
    return min(alarm.began for alarm in incident)


def _over(incident: list[RaisedAlarm]) -> float:
    return max(float("inf") if alarm.ended is None else alarm.ended for alarm in incident)
