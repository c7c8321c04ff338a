"""The alarms that clients raise, and what the demo's operator does about them.

Clients write to standard output when an alarm starts and when it ends, and which three channels
are to blame (`[alarms] ndjson = "-"`). They read the same room in turn, so several of them see the
same fault. The operator has three rules:

1. The start of an alarm makes it act, never a score.
2. It takes a mote out of service when two clients have an open alarm that was raised with a
   channel of that mote among the three, with a share of `LEAST` or more. In a fleet of one client,
   one is enough.
3. From then on the mote's readings are gaps. It never puts a mote back into service.

`submerge demo --seed N --json` for N = 0..7: 43 of 48 faults found, 42 with the right channel
first; 2 false incidents. Light that is stuck by night or noisy by a window, slow drifts and noise
that is learnt before it is seen are missed. Processes are scheduled differently in each run, so
these counts vary by one or two.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.event import alarm_of

LEAST = 0.15
"""Share of the blame from which the operator considers a mote."""

AGREE = 2
"""Clients that have to blame the same mote, if there are as many."""

Blame = tuple[tuple[str, float], ...]


@dataclass(slots=True)
class RaisedAlarm:
    """One alarm of one client.

    cause : Which kind of score was over its limit; or `stuck`.
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

    raised : In order of arrival.
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
