"""The alarms of a run, held against the truth: the false ones, and what was found how late."""

from dataclasses import dataclass

from fleet_in_time import Fleet, Member
from plants.plant import Injected
from submerge.protocol.alarm_status import Alarm

WEEK_S = 7 * 86400.0
REPAIR = 8
"""Rows after a fault's end in which an alarm is one about its repair."""


@dataclass(frozen=True)
class Found:
    """What became of a fault.

    delay_h : from its start to its alarm; None if there was none
    cause : which score was over its limit
    looks : "sensor", "process", or "" where that cannot be told
    first, last : whether the right channel was in the top three at once, and in the end
    """

    fault: Injected
    delay_h: float | None
    cause: str = ""
    first: bool = False
    last: bool = False
    top: tuple[str, ...] = ()
    looks: str = ""


OF_PROCESS = ("sticking", "feed", "cooling", "compressor wear", "fan wear")
"""Kinds of the plants that are not of a sensor."""


@dataclass(frozen=True)
class Outcome:
    """What a run came to.

    quiet_weeks : node-weeks that were watched while nothing was wrong, by final limits
    false : alarms that began in them
    stated, provisional : false alarms by provisional limits: as many as their rates allow, and
        those that were
    repairs : alarms that began within `REPAIR` rows of a fault's end: a node that had come to watch
        from the faulty level sees the repair as a change. They are not false
    """

    plant: str
    promised: float
    quiet_weeks: float
    false: tuple[tuple[str, float, Alarm], ...]
    found: tuple[Found, ...]
    armed_h: float
    seed: int = 0
    stated: float = 0.0
    provisional: int = 0
    repairs: int = 0

    @property
    def realised(self) -> float:
        """False alarms a node and week."""
        return len(self.false) / self.quiet_weeks if self.quiet_weeks else 0.0


def judged(fleet: Fleet, seed: int = 0) -> Outcome:
    """Hold the alarms of a run against the truth."""
    plant, false, found, quiet = fleet.plant, [], [], 0.0
    stated, provisional, repairs = 0.0, 0, 0
    for number, member in enumerate(fleet.members):
        faults = [fault for fault in plant.faults if fault.node == number]
        spans = [(fault.start, fault.end + plant.lingers) for fault in faults]
        alarms, early = member.by_limits()
        alarms = [each for each in alarms if each.cause != "silent"]  # true: motes do fall silent
        provisional += sum(
            not any(start <= fleet.row_at(each.began) < end for start, end in spans)
            for each in early
        )
        open_at = [(fleet.row_at(a.began), fleet.row_at(a.ended or fleet.now.wall)) for a in alarms]
        for alarm, (row, _) in zip(alarms, open_at, strict=True):
            if any(end <= row < end + REPAIR for _, end in spans):
                repairs += 1
            elif not any(start <= row < end for start, end in spans):
                false.append((member.name, row * plant.period_s / 86400, alarm))
        for hour in member.armed:
            start, stop = fleet.bounds(hour - 1)
            wrong = any(stop > first and start < last for first, last in spans)
            # What is open already cannot begin.
            quiet += not wrong and not any(a < start and stop < b for a, b in open_at)
        for hour, rows in member.provisional.items():
            start, stop = fleet.bounds(hour - 1)
            wrong = any(stop > first and start < last for first, last in spans)
            stated += 0.0 if wrong else (stop - start) / rows
        found += [_found(fleet, member, fault) for fault in faults]
    first = min((min(member.armed) for member in fleet.members if member.armed), default=0)
    weeks = quiet * fleet.step_s / WEEK_S
    promised = fleet.alarms.at_most_per_s * WEEK_S
    return Outcome(
        plant.name,
        promised,
        weeks,
        tuple(false),
        tuple(found),
        float(first),
        seed,
        stated,
        provisional,
        repairs,
    )


def _found(fleet: Fleet, member: Member, fault: Injected) -> Found:
    for alarm in member.by_limits()[0]:
        row = fleet.row_at(alarm.began)
        if fault.start <= row < fault.end:
            last = tuple(name for name, _ in alarm.top)
            first = member.first_top.get(alarm.number, ())
            delay = (row - fault.start) * fleet.plant.period_s / 3600
            right = set(fault.channels)
            looks = "" if alarm.looks is None else alarm.looks.like
            named = bool(right & {*first}), bool(right & {*last})
            return Found(fault, delay, alarm.cause, *named, last, looks)
    return Found(fault, None)
