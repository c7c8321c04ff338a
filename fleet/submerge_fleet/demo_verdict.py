"""Alarms held against the truth: found, missed, false."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from typing import Literal

from submerge_fleet.demo_watch import WINDOW, Alarm
from submerge_fleet.room import SNAPSHOT_S, Fault


@dataclass(frozen=True, slots=True)
class Verdict:
    """A fault, the alarm that found it, or both.

    Attributes
    ----------
    mote : int
        The one that it is about.
    outcome : {"found", "missed", "false"}
        An alarm on a mote with a fault that holds, or ended less than the watch's
        window ago; a fault without one; an alarm without a fault.
    """

    mote: int
    outcome: Literal["found", "missed", "false"]
    fault: Fault | None
    alarm: Alarm | None

    @property
    def named_right(self) -> bool:
        """Whether the alarm names a quantity that the fault shows in."""
        return (
            self.fault is not None
            and self.alarm is not None
            and self.alarm.quantity in self.fault.quantities
        )

    @property
    def delay_h(self) -> float | None:
        """Hours from the fault's start to the alarm."""
        if self.fault is None or self.alarm is None:
            return None
        return (self.alarm.snapshot - self.fault.start) * SNAPSHOT_S / 3600

    def figures(self) -> dict[str, object]:
        """Return it ready for JSON."""
        return asdict(self) | {"named_right": self.named_right, "delay_h": self.delay_h}


def judged(faults: Iterable[Fault], alarms: Iterable[Alarm]) -> tuple[Verdict, ...]:
    """Match alarms with faults: faults first, in their order, then what was false."""
    left = list(alarms)
    verdicts = []
    for fault in faults:
        alarm = next((alarm for alarm in left if _answers(alarm, fault)), None)
        if alarm is not None:
            left.remove(alarm)
        verdicts.append(Verdict(fault.mote, "found" if alarm else "missed", fault, alarm))
    return (*verdicts, *(Verdict(alarm.mote, "false", None, alarm) for alarm in left))


def _answers(alarm: Alarm, fault: Fault) -> bool:
    return alarm.mote == fault.mote and fault.start < alarm.snapshot <= fault.end + WINDOW
