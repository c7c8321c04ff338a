"""Comings: what the log says of devices that come, go, or get another name.

1. A device is *new* if the schema has none of its fields. It is announced once, when its rate is
   known: after `TIMES` readings of a field and `SETTLE_S`, with each field's name, unit, range, and
   how often it comes.
2. It looks like a device of the schema *under a new name* if that one has the same fields, was last
   heard before the new one began, and is silent for longer than ever, and than three times its mean
   silence. Of several it is the one that was heard last. While another may still speak, the
   announcement waits, for `WAIT_S` at most.
3. A device of the schema is *silent* when all its channels have become gaps, and *speaks again*
   after that; each is said once.
4. At most `AT_ONCE` devices are announced in one call; the others wait. Names are printable, and as
   long as `fields.LONGEST_NAME` allows; of a device at most `MOST_FIELDS` are listed.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from submerge.judge.decision import Mask
from submerge_client.sensors.mqtt.heard import HeardField

TIMES, SETTLE_S = 3, 300.0
AT_ONCE = 5
MOST_FIELDS = 16
CERTAIN = 3.0

WAIT_S = 3600.0


NEW = "new device: none of its fields is a channel"
RENAMED = "device of the schema under a new name"
SILENT, SPEAKS = "device silent", "device speaks again"
"""What is said; `logs.LOUD` has those that a person should look into."""


class Remark(NamedTuple):
    """A line for the log: what happened, and its facts."""

    what: str
    facts: dict[str, object]


class _KnownDevice(NamedTuple):
    """A device of the schema: when it was heard last, and whether it is gone by now."""

    device: str
    last_s: float
    is_gone: bool


class Comings:
    """Devices that come and go.

    channels : The schema's names, in its order.
    """

    def __init__(self, channels: Sequence[str]) -> None:
        self._listed = defaultdict[str, list[int]](list)
        for place, name in enumerate(channels):
            self._listed[_device(name)].append(place)
        self._announced = set[str]()
        self._present, self._silent = set[str](), set[str]()
        self._taken = set[str]()  # devices of the schema that have another name now

    def remarks(self, heard: Mapping[str, HeardField], absent: Mask, now: float) -> list[Remark]:
        """Return what is to be said now.

        heard : All fields that were heard, by name.
        absent : (channels,) of bool. Which channels have no value.
        now : On the clock of `heard`.
        """
        devices = defaultdict[str, list[HeardField]](list)
        for name, field in heard.items():
            devices[_device(name)].append(field)
        remarks = list(self._silences(devices, absent, now))
        unknown = devices.keys() - self._listed.keys() - self._announced
        known = self._known(devices, now) if unknown else {}
        for device, fields in devices.items():
            if len(remarks) >= AT_ONCE:
                break
            if device not in unknown or not _settled(fields, now):
                continue
            first_s = _first_s(fields)
            alike = [
                each
                for each in known.get(frozenset(_field(each.name) for each in fields), ())
                if each.last_s < first_s and each.device not in self._taken
            ]
            gone = [each for each in alike if each.is_gone]
            if len(gone) < len(alike) and now - first_s < WAIT_S:
                continue
            self._announced.add(device)
            facts: dict[str, object] = {"device": device, "fields": _listing(fields)}
            if not gone:
                remarks.append(Remark(NEW, facts))
                continue
            before = max(gone, key=lambda each: each.last_s).device
            self._taken.add(before)
            remarks.append(Remark(RENAMED, {"device": device, "looks_like": before} | facts))
        return remarks

    def _silences(
        self, devices: Mapping[str, list[HeardField]], absent: Mask, now: float
    ) -> Iterator[Remark]:
        for device, places in self._listed.items():
            if not absent[places].all():
                self._present.add(device)
                if device in self._silent:
                    self._silent.discard(device)
                    yield Remark(SPEAKS, {"device": device})
            elif device in self._present:
                self._present.discard(device)
                self._silent.add(device)
                known = devices.get(device)
                last = {} if known is None else {"for": _span(now - _last_s(known))}
                yield Remark(SILENT, {"device": device, **last})

    def _known(
        self, devices: Mapping[str, list[HeardField]], now: float
    ) -> dict[frozenset[str], list[_KnownDevice]]:
        """Return the devices of the schema that were heard, by the names of their fields.

        Once in a call: there may be a thousand new devices, and each is held against them.
        """
        known = defaultdict[frozenset[str], list[_KnownDevice]](list)
        for device in self._listed:
            fields = devices.get(device)
            if fields is not None and device not in self._taken:
                names = frozenset(_field(each.name) for each in fields)
                known[names].append(_KnownDevice(device, _last_s(fields), _is_gone(fields, now)))
        return known


def _device(name: str) -> str:
    return name.partition("/")[0]


def _field(name: str) -> str:
    return name.partition("/")[2]


def _settled(fields: list[HeardField], now: float) -> bool:
    """Whether enough was heard of a device to say how often it speaks."""
    return max(each.count for each in fields) >= TIMES and now - _first_s(fields) >= SETTLE_S


def _is_gone(fields: list[HeardField], now: float) -> bool:
    """Whether a device has been silent for so long that another name is the likely reason."""
    usual_s = min(each.every_s or WAIT_S for each in fields)
    longest_s = min(each.longest_s for each in fields)
    return now - _last_s(fields) > max(CERTAIN * usual_s, longest_s)


def _first_s(fields: list[HeardField]) -> float:
    return min(each.first_s for each in fields)


def _last_s(fields: list[HeardField]) -> float:
    return max(each.last_s for each in fields)


def _listing(fields: list[HeardField]) -> list[str]:
    """Return each field with its unit, its range and its rate, as a person reads it."""
    texts = [
        f"{_field(each.name) or each.name}{f' [{each.unit}]' if each.unit else ''}"
        f" {each.lowest:.4g} to {each.highest:.4g}, every {_span(each.every_s or 0.0)}"
        for each in fields[:MOST_FIELDS]
    ]
    return texts + ["…"] * (len(fields) > MOST_FIELDS)


def _span(seconds: float) -> str:
    """Return a time as "40 s", "5 min" or "2.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 6000 else f"{seconds / 3600:.1f} h"
