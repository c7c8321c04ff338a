"""Comings: what the log says of devices that come, go, or get another name.

1. A device is *new* if the schema has none of its fields. It is announced once, when its rate is
   known: after `TIMES` readings of a field and `SETTLE_S`, with each field's name, unit, range, and
   how often it comes.
2. It looks like a device of the schema *under a new name* if that one was last heard before the new
   one began, and both have the same fields. While this is not certain, the announcement waits: for
   three times the usual silence of the other.
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
"""Usual silences after which a device that may have got another name is taken to be gone."""

UNHEARD_S = 3600.0
"""In place of that, for a device that was not heard since the start."""


NEW = "new device: none of its fields is a channel"
RENAMED = "device of the schema under a new name"
SILENT, SPEAKS = "device silent", "device speaks again"
"""What is said; `logs.LOUD` has those that a person should look into."""


class Remark(NamedTuple):
    """A line for the log: what happened, and its facts."""

    what: str
    facts: dict[str, object]


class Comings:
    """Devices that come and go.

    Parameters
    ----------
    channels : sequence of str
        The schema's names, in its order.
    """

    def __init__(self, channels: Sequence[str]) -> None:
        self._listed = defaultdict[str, list[int]](list)
        for place, name in enumerate(channels):
            self._listed[_device(name)].append(place)
        self._announced = set[str]()
        self._silent = set[str]()
        self._taken = set[str]()  # devices of the schema that have another name now

    def remarks(self, heard: Mapping[str, HeardField], absent: Mask, now: float) -> list[Remark]:
        """Return what is to be said now.

        Parameters
        ----------
        heard : mapping of str to HeardField
            All fields that were heard, by name.
        absent : (channels,) of bool
            Which channels have no value.
        now : float
            On the clock of `heard`.
        """
        devices = defaultdict[str, list[HeardField]](list)
        for name, field in heard.items():
            devices[_device(name)].append(field)
        remarks = list(self._silences(devices, absent, now))
        for device, fields in devices.items():
            if len(remarks) >= AT_ONCE:
                break
            if device in self._announced or device in self._listed or not _settled(fields, now):
                continue
            before = self._before(fields, devices)
            if before is not None and not _is_gone(devices.get(before), fields, now):
                continue
            self._announced.add(device)
            facts: dict[str, object] = {"device": device, "fields": _listing(fields)}
            if before is None:
                remarks.append(Remark(NEW, facts))
            else:
                self._taken.add(before)
                facts = {"device": device, "looks_like": before} | facts
                remarks.append(Remark(RENAMED, facts))
        return remarks

    def _silences(
        self, devices: Mapping[str, list[HeardField]], absent: Mask, now: float
    ) -> Iterator[Remark]:
        for device, places in self._listed.items():
            gone, known = bool(absent[places].all()), devices.get(device)
            if known and gone and device not in self._silent:
                self._silent.add(device)
                last_s = now - max(field.last_s for field in known)
                yield Remark(SILENT, {"device": device, "for": _span(last_s)})
            elif not gone and device in self._silent:
                self._silent.discard(device)
                yield Remark(SPEAKS, {"device": device})

    def _before(
        self, fields: list[HeardField], devices: Mapping[str, list[HeardField]]
    ) -> str | None:
        """Return the device of the schema that may have got another name; None if none or many."""
        names = {_field(each.name) for each in fields}
        began = min(each.first_s for each in fields)
        found = list[str]()
        for device in self._listed:
            known = devices.get(device, [])
            same = {_field(each.name) for each in known} == names
            if device not in self._taken and same and max(each.last_s for each in known) < began:
                found.append(device)
        return found[0] if len(found) == 1 else None


def _device(name: str) -> str:
    return name.partition("/")[0]


def _field(name: str) -> str:
    return name.partition("/")[2]


def _settled(fields: list[HeardField], now: float) -> bool:
    """Whether enough was heard of a device to say how often it speaks."""
    began = min(each.first_s for each in fields)
    return max(each.count for each in fields) >= TIMES and now - began >= SETTLE_S


def _is_gone(known: list[HeardField] | None, fields: list[HeardField], now: float) -> bool:
    """Whether a device has been silent for so long that another name is the likely reason."""
    if not known:
        return now - min(each.first_s for each in fields) > UNHEARD_S
    usual = min(each.every_s or UNHEARD_S for each in known)
    return now - max(each.last_s for each in known) > CERTAIN * usual


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
