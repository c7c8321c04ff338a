"""The alarms that clients raise, as their supervisor hears them, and what its operator does.

Clients say on their standard output when an alarm begins and when it is over, and which three
channels are to blame (`[alarms] ndjson = "-"`). They look at one room in turn, so what is wrong
is seen by several of them. The operator's rule, whole:

1. It is woken by a start, never by a score.
2. A mote is taken out of service when two clients have an alarm open that was raised with a
   channel of that mote among the three, with a share of `LEAST` or more; with one client alone,
   when that one has.
3. From there on its readings are gaps. Nothing is put back into service.

`submerge demo --seed N --json` for N = 0..7: 43 of 48 faults found, 42 with the right channel
first; 2 false alarms. Light that is stuck by night or noisy by a window, slow drifts and noise that
is learnt before it is seen are missed. A fleet of processes does not do the same twice: one or two
more or less are no surprise.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from submerge.protocol.alarm_changes import diff
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.event import alarm_of

LEAST = 0.15
"""Share of the blame from which the operator goes to look at a mote."""

AGREE = 2
"""Clients that have to say the same, if there are so many."""

Blame = tuple[tuple[str, float], ...]


@dataclass(slots=True)
class Raised:
    """One alarm of one client.

    Attributes
    ----------
    node, name : str
    cause : str
        Which kind of score was over its limit; or `stuck`.
    began : int
        The newest snapshot that the client had scored when it said so.
    blamed : tuple of (channel, share)
        Three at most, as it was raised.
    ended : int or None
        As `began`; None while it is open.
    """

    node: str
    name: str
    cause: str
    began: int
    blamed: Blame
    ended: int | None = None

    def figures(self) -> dict[str, Any]:
        """Return it ready for JSON."""
        names = ("node", "name", "cause", "began", "ended")
        return {name: getattr(self, name) for name in names} | {"top": dict(self.blamed)}


@dataclass(frozen=True, slots=True)
class NamedAlarm:
    """A mote that is named: for which quantity, and at which snapshot."""

    mote: int
    quantity: str
    snapshot: int


class HeardAlarms:
    """All alarms of a run.

    Parameters
    ----------
    clients : int
        How many there are.

    Attributes
    ----------
    raised : list of Raised
        In the order in which they were heard.
    out : list of Named
        Motes that are out of service, since when, and for what.
    """

    def __init__(self, clients: int) -> None:
        self.raised: list[Raised] = []
        self.out: list[NamedAlarm] = []
        self._agree = min(AGREE, clients)
        self._by_name: dict[str, Raised] = {}
        self._heard: dict[str, Alarm] = {}

    @property
    def open(self) -> list[Raised]:
        """Those that are not over."""
        return [alarm for alarm in self.raised if alarm.ended is None]

    def hear(self, event: Mapping[str, Any], snapshot: int) -> None:
        """Take in what a client says of an alarm; what was heard before is no news.

        A client that was killed may say again what it was about to say.
        """
        alarm = alarm_of(event)
        before = self._heard.get(alarm.name)
        for kind, _ in diff(() if before is None else (before,), (alarm,)):
            if kind == "start" and alarm.is_open:
                self.raised.append(Raised(alarm.node, alarm.name, alarm.cause, snapshot, alarm.top))
                self._by_name[alarm.name] = self.raised[-1]
                self._act(snapshot)
            elif kind == "end" and before is not None:
                self._by_name[alarm.name].ended = snapshot
        if before is None or before.is_open:
            self._heard[alarm.name] = alarm

    def _act(self, snapshot: int) -> None:
        """Take out of service what enough clients blame."""
        gone = {each.mote for each in self.out}
        votes: dict[int, dict[str, str]] = {}
        for alarm in self.open:
            for mote, quantity in named(alarm.blamed, least=LEAST):
                votes.setdefault(mote, {}).setdefault(alarm.node, quantity)
        for mote, by in votes.items():
            if mote not in gone and len(by) >= self._agree:
                self.out.append(NamedAlarm(mote, next(iter(by.values())), snapshot))


def named(blamed: Blame, *, least: float = 0.0) -> list[tuple[int, str]]:
    """Return the motes and quantities that an alarm names, the guiltiest first."""
    found = []
    for channel, share in blamed:
        mote, quantity = channel.split(".")
        if share >= least:
            found.append((int(mote.removeprefix("mote")), quantity))
    return found


def incidents(raised: Collection[Raised]) -> list[list[Raised]]:
    """Return alarms that overlap in time as one each: several clients see the same."""
    groups: list[list[Raised]] = []
    until = -1.0
    for alarm in sorted(raised, key=lambda each: each.began):
        if alarm.began > until:
            groups.append([])
            until = -1.0
        groups[-1].append(alarm)
        until = max(until, float("inf") if alarm.ended is None else alarm.ended)
    return groups
