"""Alarms held against the truth: found, missed, false, and whether the right channel was named.

An alarm finds a fault that it was raised in, or soon after, if it names the faulty mote: one of its
three channels is that mote's, with a share that the operator would go by. What several clients
say at a time is one incident; it is false where no alarm of it finds anything, and so is a mote
that was taken out of service in good order.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from submerge_fleet.demo.alarms import LEAST, HeardAlarms, NamedAlarm, Raised, incidents, named
from submerge_fleet.plants.room import SNAPSHOT_S, Fault

SOON = round(3600 / SNAPSHOT_S)
"""Snapshots for which a fault that was mended may still be found: eight rows of eight clients, and
what was on its way."""


@dataclass(frozen=True, slots=True)
class FaultVerdict:
    """A fault, the alarm that found it, or both.

    Attributes
    ----------
    mote : int
        The one that it is about; 0 where an alarm blames none.
    outcome : {"found", "missed", "false"}
    fault : Fault or None
    alarm : Named or None
        The mote as the alarm named it.
    first : bool
        Whether the channel that it put first is one that the fault shows in.
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
        """Return it ready for JSON."""
        return asdict(self) | {"delay_h": self.delay_h}


def judged(faults: Iterable[Fault], alarms: HeardAlarms) -> tuple[FaultVerdict, ...]:
    """Match alarms with faults: faults first, in their order, then what was false."""
    faults = tuple(faults)
    verdicts = [_verdict(fault, alarms.raised) for fault in faults]
    wrong = [
        incident
        for incident in incidents(alarms.raised)
        if not any(_finds(alarm, fault) for alarm in incident for fault in faults)
    ]
    said = [_first(incident) for incident in wrong]
    for out in alarms.out:
        sound = not any(
            fault.mote == out.mote and fault.start < out.snapshot <= fault.end + SOON
            for fault in faults
        )
        within = any(_began(each) <= out.snapshot <= _over(each) for each in wrong)
        if sound and not within:
            said.append(out)
    false = sorted(said, key=lambda each: each.snapshot)
    return (*verdicts, *(FaultVerdict(each.mote, "false", None, each) for each in false))


def _verdict(fault: Fault, raised: Iterable[Raised]) -> FaultVerdict:
    alarm = min(
        (each for each in raised if _finds(each, fault)), key=lambda each: each.began, default=None
    )
    if alarm is None:
        return FaultVerdict(fault.mote, "missed", fault, None)
    quantity = next(q for mote, q in named(alarm.blamed) if mote == fault.mote)
    first = named(alarm.blamed)[0]
    right = first[0] == fault.mote and first[1] in fault.quantities
    return FaultVerdict(
        fault.mote, "found", fault, NamedAlarm(fault.mote, quantity, alarm.began), right
    )


def _finds(alarm: Raised, fault: Fault) -> bool:
    motes = [mote for mote, _ in named(alarm.blamed, least=LEAST)]
    return fault.mote in motes and fault.start < alarm.began <= fault.end + SOON


def _first(incident: list[Raised]) -> NamedAlarm:
    """What the first alarm of it blames that blames anything; mote 0 if none does."""
    blamed = [each for alarm in incident for each in named(alarm.blamed)]
    mote, quantity = next(iter(blamed), (0, ""))
    return NamedAlarm(mote, quantity, incident[0].began)


def _began(incident: list[Raised]) -> float:
    return min(alarm.began for alarm in incident)


def _over(incident: list[Raised]) -> float:
    return max(float("inf") if alarm.ended is None else alarm.ended for alarm in incident)
