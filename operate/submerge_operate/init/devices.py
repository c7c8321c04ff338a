"""Hearing: what a broker's devices say, gathered for a while.

Descriptions come first: they say which topics there are, and what fields are called. Retained
messages may be days old: their fields are known from them, but were not heard. Where no form fits,
the first level is the device (`{device}/#`), so that another room joins by itself.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from itertools import chain
from typing import NamedTuple, TypeVar

from submerge_client.sensors.mqtt.decoder import (
    LONGEST_NAME,
    MOST_NAMES,
    HeardField,
    MalformedMessage,
    RebirthRequest,
    content_of,
    departed,
    fields_of,
    says_presence,
    words_of,
)
from submerge_client.sensors.mqtt.descriptions import (
    MOST_DESCRIBED,
    DescribedField,
    Descriptions,
    is_description,
)
from submerge_client.sensors.mqtt.messages import KINDS, MessageDecoder
from submerge_client.sensors.mqtt.sparkplug import NAMESPACE
from submerge_client.sensors.mqtt.topics import (
    DEVICE,
    PLACED,
    TopicPattern,
    TopicPlace,
    is_reading,
    name_of,
)
from submerge_client.sensors.tally import ProblemTally, no_log

ALL = "#"

MOST_NAMED = 16  # patterns that descriptions name: any device of the network can publish one

FORMS = (
    "tele/{device}/SENSOR",  # Tasmota
    "shellies/{device}/#",  # Shelly, first generation
    "{device}/events/rpc",  # Shelly, second generation
    "{device}/status/#",
    "{device}/sensor/{field}/state",  # ESPHome
    "homie/{device}/#",  # Homie
    "v3/+/devices/{device}/up",  # The Things Stack
    f"{NAMESPACE}/#",  # Sparkplug B, which names its metrics itself
)
"""Where well-known devices publish what they measure."""

ANY = "{device}/#"
"""The pattern of what has no known form."""

WHOLES = ("state", "status", "sensor", "sensors", "data", "json", "telemetry", "values", "readings")
"""Last levels of what a device says of all its quantities, in small letters: no device's name."""


def patterns_of(
    asked: Sequence[str], bridges: Iterable[str], described: Sequence[DescribedField]
) -> list[str]:
    """Return patterns, the more precise first."""
    named = chain(_of_bridges(bridges, described), _of_tasmota(described))
    forms = [*list(dict.fromkeys(named))[:MOST_NAMED], *FORMS]
    patterns = list[str]()
    for pattern in asked:
        if pattern.split("/")[-1] == ALL:
            patterns += [form for form in forms if _covers(pattern, form)]
        if pattern != ALL:
            patterns.append(pattern)
    return list(dict.fromkeys(patterns))


def _of_bridges(bridges: Iterable[str], described: Sequence[DescribedField]) -> Iterator[str]:
    for base in dict.fromkeys(bridges):
        if not base or set(base) & PLACED:
            continue
        depth = base.count("/") + 1
        devices = [each.topic for each in described if each.topic.startswith(f"{base}/")]
        # Friendly names may have slashes: a room and a device.
        is_deep = any(topic.count("/") > depth for topic in devices)
        yield f"{base}/{ALL}" if is_deep else f"{base}/+"


def _of_tasmota(described: Sequence[DescribedField]) -> Iterator[str]:
    """Yield the patterns of topics that end in SENSOR, where they are not as usual."""
    for each in described:
        levels = each.topic.split("/")
        if set(each.topic) & {*PLACED, "+", "#"}:
            continue
        if levels[-1] == "SENSOR" and len(levels) == 3 and levels[0] != "tele":
            # %topic%/%prefix%/, or a prefix of one's own.
            swapped = levels[1] == "tele"
            yield "{device}/tele/SENSOR" if swapped else f"{levels[0]}/{{device}}/SENSOR"


def _covers(pattern: str, form: str) -> bool:
    """Return whether a pattern that ends in `#` hears all topics of a form."""
    *fixed, _ = pattern.split("/")
    levels = form.split("/")
    return len(levels) > len(fixed) and all(
        mine in ("+", other) for mine, other in zip(fixed, levels, strict=False)
    )


OPEN = frozenset("+#{}")
"""What a topic has that is none, but a pattern."""


def presence_pattern(
    topic: str, word: str, of: TopicPlace, patterns: Sequence[TopicPattern]
) -> str | None:
    """Return the pattern of a topic; None if the sensor would not follow it, or hears it."""
    levels = topic.split("/")
    if not says_presence(topic) or OPEN & set(topic) or levels[:-1].count(of.device) != 1:
        return None
    if any(each.place_of(topic) for each in patterns):
        return None  # the first pattern that fits names it
    found = "/".join(DEVICE if level == of.device else level for level in levels[:-1])
    found = f"{found}/{levels[-1]}"
    place = TopicPattern(found).place_of(topic)
    if place is None or not departed(topic, place, word).covers(name_of(of, "x")):
        return None
    return found


MOST_PATTERNS, MOST_SHORT = 32, 4 * MOST_NAMES
MOST_WORDS = 16  # different words of one field that are remembered

BRIDGE = "/bridge/devices"

Value = TypeVar("Value")


class _Ear(NamedTuple):
    """A pattern, and what is heard by it."""

    text: str
    pattern: TopicPattern
    decoder: MessageDecoder
    tally: ProblemTally


class Hearing:
    def __init__(self, asked: Sequence[str], *, rebirth: bool = False) -> None:
        self._asked, self._rebirth = tuple(asked), rebirth
        self._descriptions, self._described = Descriptions(), list[DescribedField]()
        self._bridges: dict[str, None] = {}
        self._ears: list[_Ear] = []
        self._ear_of: dict[str, _Ear] = {}
        # By whole names, until all are known.
        self._short: dict[str, str] = {}
        self._words: dict[str, set[str]] = {}
        self._retained: dict[str, None] = {}
        # By first level, where no form fits: whether its second can be a device.
        self._below: dict[str, bool] = {}
        self.messages = 0

    def describe(self, topic: str, payload: bytes | bytearray) -> Iterable[RebirthRequest]:
        if is_description(topic) and len(self._described) < MOST_DESCRIBED:
            with suppress(MalformedMessage):
                self._described += self._descriptions.take(topic, payload)
                if topic.endswith(BRIDGE) and len(self._bridges) < MOST_PATTERNS:
                    self._bridges[topic.removesuffix(BRIDGE)] = None
        return ()

    def begin(self) -> tuple[str, ...]:
        """Settle the patterns; return the subscriptions to hear readings by."""
        for pattern in patterns_of(self._asked, self._bridges, self._described):
            self._listen_by(pattern)
        return tuple(dict.fromkeys(TopicPattern(each).subscription for each in self._asked))

    def take(
        self, topic: str, payload: bytes | bytearray, *, retained: bool
    ) -> Iterable[RebirthRequest]:
        """Take a message of a device; return what to publish."""
        ear = self._ear_for(topic) if is_reading(topic) else None
        if ear is None:
            return ()
        self.messages += 1
        if not topic.startswith(f"{NAMESPACE}/"):
            with suppress(MalformedMessage):
                self._note_names(ear, topic, payload, retained=retained)
        ear.decoder.readings(topic, payload, retained=retained)
        for name in ear.decoder.take_unlisted():
            self._ear_of.setdefault(name, ear)
        return ear.decoder.take_requests()

    @property
    def fields(self) -> dict[str, HeardField]:
        """The numbers that were heard, by name."""
        fields = dict[str, HeardField]()
        for ear in list(self._ears):
            for name, field in list(ear.decoder.heard.fields.items()):
                fields.setdefault(name, field)
        return {name: replace(field, name=name) for name, field in self._by_name(fields).items()}

    @property
    def words(self) -> dict[str, set[str]]:
        return self._by_name(self._words)

    @property
    def retained(self) -> dict[str, None]:
        """Numbers of retained messages, by name."""
        return self._by_name(self._retained)

    @property
    def names(self) -> int:
        """How many fields are known of messages."""
        return len(self._ear_of)

    @property
    def unborn(self) -> int:
        """Messages of Sparkplug B without names."""
        return sum(ear.tally.counts["unborn"] for ear in self._ears)

    def described(self) -> dict[str, DescribedField]:
        """Return what is described of the topics that were asked for, by name."""
        named = dict[str, DescribedField]()
        for each in self._described:
            ear = self._ear_for(each.topic) if self._is_asked(each.topic) else None
            place = None if ear is None else ear.pattern.place_of(each.topic)
            if ear is None or place is None:
                continue
            name = self._whole(ear, each.topic, each.path)
            # A gateway may describe a field in two ways, of which one says more.
            if name not in named or (each.kind and not named[name].kind):
                named[name] = each
                self._ear_of.setdefault(name, ear)
        return self._by_name(named)

    def patterns(self, names: Iterable[str]) -> list[str]:
        """Return the patterns that fields come by, the more precise first."""
        # Those of Zigbee2MQTT have one more, by which it says that a device is away; so have fields
        # whose description names the topic for it.
        names = dict.fromkeys(names)
        used = {text for name, text in self._by_name(self._texts()).items() if name in names}
        mine = f"{self._group() or DEVICE}/{ALL}"
        heard = (mine if ear.text == ANY else ear.text for ear in self._ears)
        found = [text for text in heard if text in used]
        away = [f"{base}/+/availability" for base in self._bridges if f"{base}/+" in used]
        return self._with_presence(found + list(dict.fromkeys(away)), names)

    def _with_presence(self, patterns: list[str], names: Iterable[str]) -> list[str]:
        """Return patterns, and those by which descriptions say that a device is away."""
        described, texts = self.described(), self._by_name(self._texts())
        for name in names:
            field = described.get(name)
            for topic, word in () if field is None else field.away:
                place = TopicPattern(texts[name]).place_of(field.topic) if field else None
                if place is None or not self._is_asked(topic):
                    continue
                found = presence_pattern(topic, word, place, list(map(TopicPattern, patterns)))
                patterns += [] if found is None else [found]
        return patterns

    def _texts(self) -> dict[str, str]:
        """Return the pattern of each whole name."""
        mine = f"{self._group() or DEVICE}/{ALL}"
        return {name: mine if ear.text == ANY else ear.text for name, ear in self._ear_of.items()}

    def _group(self) -> str:
        """Return the first level below which the second is the device; "" if there is none."""
        others = {name: ear.text for name, ear in self._ear_of.items() if ear.text != ANY}
        closed = all(DEVICE in text or text[-2:] != "/#" for text in others.values())
        if len(self._below) != 1 or not closed or False in self._below.values():
            return ""
        taken = {self._short.get(name, name) for name in others}
        mine = {self._short.get(name, name) for name in self._ear_of.keys() - others.keys()}
        return "" if mine & taken else next(iter(self._below))

    def _listen_by(self, text: str) -> _Ear:
        tally = ProblemTally(no_log, *KINDS)
        decoder = MessageDecoder((), topics=(text,), tally=tally, rebirth=self._rebirth, whole=True)
        ear = _Ear(text, TopicPattern(text), decoder, tally)
        self._ears.append(ear)
        return ear

    def _ear_for(self, topic: str) -> _Ear | None:
        for ear in self._ears:
            if ear.pattern.place_of(topic) is not None:
                return ear
        # Only `#` hears what no pattern fits.
        if ALL in self._asked and len(self._ears) < MOST_PATTERNS:
            return self._listen_by(ANY if "/" in topic else topic)
        return None

    def _is_asked(self, topic: str) -> bool:
        patterns = map(TopicPattern, self._asked)
        return ALL in self._asked or any(each.place_of(topic) for each in patterns)

    def _note_names(
        self, ear: _Ear, topic: str, payload: bytes | bytearray, *, retained: bool
    ) -> None:
        """Remember words, and the names of what is retained."""
        content = content_of(payload)
        for path, word in words_of(content):
            name = self._whole(ear, topic, path)
            words = self._words.get(name)
            if words is None and len(self._words) < MOST_NAMES:
                words = self._words.setdefault(name, set())
                self._ear_of.setdefault(name, ear)
            if words is not None and len(words) < MOST_WORDS:
                words.add(word[:LONGEST_NAME])
        for path, _ in fields_of(content, {}):
            name = self._whole(ear, topic, path)
            first, _, below = topic.partition("/")
            if ear.text == ANY and name in self._short:
                deep = "/" in below or bool(path and below.lower() not in WHOLES)
                self._below[first] = deep and self._below.get(first, True)
            if retained and len(self._retained) < MOST_NAMES:
                self._retained[name] = None
                self._ear_of.setdefault(name, ear)

    def _whole(self, ear: _Ear, topic: str, path: str) -> str:
        """Return the whole name of a number, and remember the short one."""
        own = TopicPattern(f"{topic.partition('/')[0]}/{ALL}") if ear.text == ANY else ear.pattern
        whole, place = name_of(ear.pattern.whole_place_of(topic), path), own.place_of(topic)
        if place is not None and len(self._short) < MOST_SHORT:
            self._short[whole] = name_of(place, path)
        return whole

    def _by_name(self, found: Mapping[str, Value]) -> dict[str, Value]:
        """Return what is known by whole names by those that it gets."""
        texts, wholes = self._texts(), defaultdict[str, list[str]](list)
        short = {each: self._short.get(each, each) for each, text in texts.items() if text != ANY}
        for whole, name in short.items():
            wholes[name].append(whole)
        alike = {texts[each] for several in wholes.values() if several[1:] for each in several}
        # Of two such patterns a room of one may one day be called like one of the other.
        open_ended = {t for t in texts.values() if t.endswith(f"/{ALL}") and DEVICE not in t}
        alike |= open_ended if len(open_ended) > 1 else set()
        return {
            each if texts.get(each) in alike else short.get(each, each): value
            for each, value in found.items()
        }
