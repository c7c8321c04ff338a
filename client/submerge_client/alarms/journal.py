"""Journal: what each sink has delivered, in a small file beside the checkpoint."""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import msgspec

from submerge.protocol.alarm_changes import AlarmEvent, diff
from submerge.protocol.alarm_status import INCIDENT, MARKS, Alarm
from submerge_client.files import atomic_write, refuse_link, sync_folder
from submerge_client.logs import say

MOST = 32  # ended alarms of a node that a sink remembers; the node remembers a quarter of that
MOST_IN_ALL = 20_000  # ended alarms of all nodes together that a sink remembers


@dataclass(frozen=True, slots=True)
class Delivered:
    """What one sink has delivered: its open alarms as at the start, and names of those over."""

    open: tuple[Alarm, ...] = ()
    over: tuple[str, ...] = ()

    @classmethod
    def since(cls, alarms: Iterable[Alarm], begun: Collection[str] = ()) -> Delivered:
        """Return where a new sink begins: what is over counts as delivered, but `begun` ones."""
        over = [each for each in alarms if not each.is_open and each.name not in begun]
        over.sort(key=lambda each: (each.number, each.node))
        return cls((), _newest([name for each in over for name in _names(each)]))

    def after(self, event: AlarmEvent) -> Delivered:
        """Return a copy that counts a start or an end as delivered."""
        names = _names(event.alarm)
        others = tuple(each for each in self.open if each.name != names[0])
        if event.kind == "start":
            return Delivered((*others, event.alarm), self.over)
        known = frozenset(names)
        over = (each for each in self.over if each not in known)
        return Delivered(others, _newest([*over, *names]))

    def started(self, alarm: Alarm) -> Alarm | None:
        """Return an alarm as it was when its start was delivered; None if it is not open here."""
        return next((each for each in self.open if each.name == alarm.name), None)

    def subjects(self, alarms: Iterable[Alarm]) -> list[Alarm]:
        """Return what messages are about: incidents, and alarms that are no part of any."""
        # An incident keeps the name that it began under here, though an earlier alarm may come late
        # or leave, and lasts until all its alarms have ended. A part that has begun here ends here.
        alarms, over = tuple(alarms), frozenset(self.over)
        begun, subjects = {each.name for each in self.open}, list[Alarm]()
        single = {each.name: each for each in alarms if not each.parts}
        now = [each for each in alarms if each.parts]
        for one in (each for each in self.open if each.parts):
            same = [each for each in now if not set(one.parts).isdisjoint(each.parts)]
            now = [each for each in now if each not in same]
            # Rates may explain it by now, and its alarms may be forgotten: it goes on to its end.
            parts = {*one.parts, *(part for each in same for part in each.parts)}
            left = [single[part.name] for part in parts if part.name in single]
            is_open = any(each.is_open for each in left)
            subjects += [
                replace(
                    each,
                    node=one.node,
                    number=one.number,
                    downstream=one.downstream,
                    ended=0.0 if is_open else max(each.ended for each in left),
                    parts=tuple(sorted(parts, key=lambda part: (part.began, part.name))),
                )
                for each in (*same, one)[:1]
                if left
            ]
        # Of an incident that is over here, a later alarm is one by itself.
        subjects += [each for each in now if over.isdisjoint(_names(each))]
        whole = (*self.open, *subjects)
        silent = {part.name for each in whole for part in each.parts}
        silent |= {name for name in single if f"{INCIDENT}{name}" in over}
        return subjects + [
            each for name, each in single.items() if name in begun or name not in silent
        ]


def _names(alarm: Alarm) -> tuple[str, ...]:
    """Return the names under which an alarm is over; an incident also as if each part was first."""
    return tuple(dict.fromkeys((alarm.name, *(f"{INCIDENT}{each.name}" for each in alarm.parts))))


def undelivered(delivered: Delivered, alarms: Iterable[Alarm]) -> list[AlarmEvent]:
    """Return the starts and ends that a sink has not delivered, in the order in which they came."""
    over, begun = frozenset(delivered.over), {each.name: each for each in delivered.open}
    # Its start may have been delivered when it was over already: its end is still due.
    before = (replace(each, ended=0.0) for each in delivered.open)
    new: list[AlarmEvent] = []
    subjects = (each for each in delivered.subjects(alarms) if each.name not in over)
    for kind, alarm in diff(before, subjects):
        if kind == "start" or kind == "end":
            new.append(AlarmEvent(kind, alarm))
        # A node that loses its state file loses its alarms, and nothing else would end them.
        elif kind == "gone":
            new.append(AlarmEvent("end", begun[alarm.name].over(alarm.peaked)))
    return new


def _newest(names: list[str]) -> tuple[str, ...]:
    """Return the last names of each node, in the same order."""
    counts = Counter[str]()
    kept: list[str] = []
    for name in reversed(names):
        node = name.rpartition("-")[0]
        counts[node] += 1
        if counts[node] <= MOST:
            kept.append(name)
    return tuple(reversed(kept[:MOST_IN_ALL]))


FORM = 1
UNREADABLE = "alarm journal unreadable, starting a new one"
NOT_WRITTEN = "alarm journal not written: a restart may send alarms again"
LATER = (
    "first",
    "deviations",
    "looks",
    "parts",
    "downstream",
    *MARKS,
)  # fields of an alarm that were added to the file
MOST_BYTES = 1 << 24  # a larger file is no journal


class _File(msgspec.Struct, forbid_unknown_fields=True):
    """The names of the fields of `Delivered` and `Alarm` are bytes on disk."""

    form: int
    sinks: dict[str, Delivered]


class Journal:
    """What each of the configured sinks has delivered; safe to use from their threads."""

    def __init__(self, path: Path, sinks: Collection[str]) -> None:
        refuse_link(path, what="the alarm journal")
        self._path = Path(os.path.realpath(path))
        self._lock = threading.Lock()
        self._failed = False
        self._delivered = {
            name: delivered for name, delivered in self._load().items() if name in sinks
        }

    def delivered(self, sink: str) -> Delivered | None:
        return self._delivered.get(sink)

    def note(self, sink: str, delivered: Delivered) -> None:
        """Remember what a sink has delivered; on disk when this returns, unless the disk fails."""
        with self._lock:
            if self._delivered.get(sink) == delivered and not self._failed:
                return
            self._delivered[sink] = delivered
            try:
                self._write()
            except OSError as error:
                if not self._failed:
                    why = f"{error.strerror or error}"
                    say(NOT_WRITTEN, level="error", why=why)
                self._failed = True
            else:
                self._failed = False

    def _load(self) -> dict[str, Delivered]:
        try:
            with open(self._path, "rb") as file:
                read = msgspec.json.decode(file.read(MOST_BYTES), type=_File)
        except FileNotFoundError:
            return {}
        except (OSError, msgspec.MsgspecError, UnicodeDecodeError) as error:
            say(UNREADABLE, level="warning", why=str(error))
            return {}
        if read.form != FORM:
            why = f"it is of form {read.form}, and this submerge knows {FORM}"
            say(UNREADABLE, level="warning", why=why)
            return {}
        return read.sinks

    def _write(self) -> None:
        sinks = {name: msgspec.to_builtins(each) for name, each in self._delivered.items()}
        for alarm in (alarm for sink in sinks.values() for alarm in sink["open"]):
            # Where they say nothing they are not written, as in files of earlier versions.
            for name in [name for name in LATER if not alarm[name]]:
                del alarm[name]
        data = msgspec.json.encode({"form": FORM, "sinks": sinks})
        # One name: after a power cut it is written over, and files do not pile up on a card.
        atomic_write(self._path, data, mode=0o600, beside=f"{self._path.name}.new")
        sync_folder(self._path.parent)
