"""The alarms that clients raise, and what the demo's operator does about them.

Clients write to standard output when an alarm starts and when it ends, and which three channels
are to blame (`[alarms] ndjson = "-"`). They read the same room in turn, so several of them see the
same fault. The operator has three rules:

1. The start of an alarm makes it act, never a score.
2. It takes a mote out of service when two clients have an open alarm that was raised with a
   channel of that mote among the three, with a share of `LEAST` or more. In a fleet of one client,
   one is enough.
3. From then on the mote's readings are gaps. It never puts a mote back into service.

An alarm finds a fault if it starts while the fault holds, or soon after, and names the faulty
mote: one of its three channels is that mote's, with a share of `LEAST` or more. Alarms that
overlap in time are one incident. An incident is false if none of its alarms finds a fault; so is
taking a sound mote out of service.

`submerge demo --seed N --json` for N = 0..7: 43 of 48 faults found;
2 false incidents. Light that is stuck by night or noisy by a window, slow drifts and noise
that is learnt before it is seen are missed. Processes are scheduled differently in each run, so
these counts vary by one or two.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Literal

from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.event import alarm_of
from submerge_lab.plants.room import SNAPSHOT_S, Fault

LEAST = 0.15
"""Share of the blame from which the operator considers a mote."""

AGREE = 2
"""Clients that have to blame the same mote, if there are as many."""

SOON = round(3600 / SNAPSHOT_S)
"""Snapshots after a fault's end in which it may still be found: an hour, about eight rows of each
of eight clients and the rows on their way."""

Blame = tuple[tuple[str, float], ...]


@dataclass(slots=True)
class RaisedAlarm:
    """One alarm of one client.

    began, ended : The newest snapshot that the client had scored when it reported this; `ended` is
        None while the alarm is open.
    blamed : At most three, at the alarm's start.
    """

    node: str
    name: str
    cause: str
    began: int
    blamed: Blame
    ended: int | None = None

    def figures(self) -> dict[str, Any]:
        """Return its fields for JSON."""
        names = ("node", "name", "cause", "began", "ended")
        return {name: getattr(self, name) for name in names} | {"top": dict(self.blamed)}


@dataclass(frozen=True, slots=True)
class NamedAlarm:
    """A mote that an alarm names, with the quantity and the snapshot."""

    mote: int
    quantity: str
    snapshot: int


class FleetAlarms:
    """All alarms of a run of `clients` clients.

    out : Motes that are out of service, since when, and for which quantity.
    """

    def __init__(self, clients: int) -> None:
        self.raised: list[RaisedAlarm] = []
        self.out: list[NamedAlarm] = []
        self._agree = min(AGREE, clients)
        self._by_name: dict[str, RaisedAlarm] = {}
        self._latest: dict[str, Alarm] = {}

    @property
    def open(self) -> list[RaisedAlarm]:
        """Alarms that have not ended."""
        return [alarm for alarm in self.raised if alarm.ended is None]

    def add(self, event: Mapping[str, Any], snapshot: int) -> None:
        """Add an event of a client; a repetition, after a kill for example, changes nothing."""
        alarm = alarm_of(event)
        if alarm.cause == "silent":  # motes are away for hours, and come back
            return
        before = self._latest.get(alarm.name)
        for kind, _ in diff(() if before is None else (before,), (alarm,)):
            if kind == "start" and alarm.is_open:
                self.raised.append(
                    RaisedAlarm(alarm.node, alarm.name, alarm.cause, snapshot, alarm.top)
                )
                self._by_name[alarm.name] = self.raised[-1]
                self._act(snapshot)
            elif kind == "end" and before is not None:
                self._by_name[alarm.name].ended = snapshot
        if before is None or before.is_open:
            self._latest[alarm.name] = alarm

    def _act(self, snapshot: int) -> None:
        """Take motes out of service that enough clients blame."""
        gone = {each.mote for each in self.out}
        votes: dict[int, dict[str, str]] = {}
        for alarm in self.open:
            for mote, quantity in motes_of(alarm.blamed, least=LEAST):
                votes.setdefault(mote, {}).setdefault(alarm.node, quantity)
        for mote, by in votes.items():
            if mote not in gone and len(by) >= self._agree:
                self.out.append(NamedAlarm(mote, next(iter(by.values())), snapshot))


def motes_of(blamed: Blame, *, least: float = 0.0) -> list[tuple[int, str]]:
    """Return the motes and quantities that an alarm names, the largest share first."""
    found = []
    for channel, share in blamed:
        mote, quantity = channel.split(".")
        if share >= least:
            found.append((int(mote.removeprefix("mote")), quantity))
    return found


def incidents(raised: Collection[RaisedAlarm]) -> list[list[RaisedAlarm]]:
    """Group alarms that overlap in time: several clients see the same fault."""
    groups: list[list[RaisedAlarm]] = []
    until = -1.0
    for alarm in sorted(raised, key=lambda each: each.began):
        if alarm.began > until:
            groups.append([])
            until = -1.0
        groups[-1].append(alarm)
        until = max(until, float("inf") if alarm.ended is None else alarm.ended)
    return groups


# -- the truth -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class FaultVerdict:
    """A fault, the alarm that found it, or both; `mote`: 0 if an alarm blames none."""

    mote: int
    outcome: Literal["found", "missed", "false"]
    fault: Fault | None
    alarm: NamedAlarm | None

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


def _verdict(fault: Fault, raised: Iterable[RaisedAlarm]) -> FaultVerdict:
    alarm = min(
        (each for each in raised if _finds(each, fault)), key=lambda each: each.began, default=None
    )
    if alarm is None:
        return FaultVerdict(fault.mote, "missed", fault, None)
    quantity = next(q for mote, q in motes_of(alarm.blamed) if mote == fault.mote)
    named = NamedAlarm(fault.mote, quantity, alarm.began)
    return FaultVerdict(fault.mote, "found", fault, named)


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
