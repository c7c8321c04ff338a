"""Hearing: what a broker's devices say, gathered for a while.

1. Descriptions come first: they say which topics there are, and what fields are called.
2. Each pattern has a decoder of its own, so that what was heard says which patterns are of use.
3. Retained messages may be days old: their fields are known from them, but were not heard.
4. Names are short where that is enough: of patterns of which two topics would give one name, all
   names have all levels of their topics.
5. Everything is bounded; a broker has as many topics as its devices like.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple, TypeVar

from submerge_client.sensors.mqtt.decoder import MalformedMessage, RebirthRequest
from submerge_client.sensors.mqtt.descriptions import (
    MOST_DESCRIBED,
    DescribedField,
    Descriptions,
    is_description,
)
from submerge_client.sensors.mqtt.fields import LONGEST_NAME, content_of, fields_of, words_of
from submerge_client.sensors.mqtt.heard import MOST_NAMES, HeardField
from submerge_client.sensors.mqtt.messages import KINDS, MessageDecoder
from submerge_client.sensors.mqtt.sparkplug import NAMESPACE
from submerge_client.sensors.mqtt.topics import TopicPattern, name_of
from submerge_client.sensors.tally import ProblemTally, no_log
from submerge_operate.init.presence import presence_pattern
from submerge_operate.init.systems import ALL, first_level, is_reading, patterns_of

MOST_PATTERNS, MOST_SHORT = 32, 4 * MOST_NAMES
MOST_WORDS = 16
"""Different words of one field that are remembered."""

BRIDGE = "/bridge/devices"

Value = TypeVar("Value")


class _Ear(NamedTuple):
    """A pattern, and what is heard by it."""

    text: str
    pattern: TopicPattern
    decoder: MessageDecoder
    tally: ProblemTally


class Hearing:
    """Takes messages of devices.

    asked : Patterns of topics to listen to.
    rebirth : Ask edge nodes of Sparkplug B for their births.
    """

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
        self.messages = 0

    def describe(self, topic: str, payload: bytes | bytearray) -> None:
        """Take a message of the subscriptions of descriptions."""
        if is_description(topic) and len(self._described) < MOST_DESCRIBED:
            with suppress(MalformedMessage):
                self._described += self._descriptions.take(topic, payload)
                if topic.endswith(BRIDGE) and len(self._bridges) < MOST_PATTERNS:
                    self._bridges[topic.removesuffix(BRIDGE)] = None

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
        """Booleans and texts, by name."""
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
        """Return the patterns that fields come by, the more precise first.

        Those of Zigbee2MQTT have one more, by which it says that a device is away; so have fields
        whose description names the topic for it.
        """
        names = dict.fromkeys(names)
        used = {ear.text for name, ear in self._by_name(self._ear_of).items() if name in names}
        found = [ear.text for ear in self._ears if ear.text in used]
        away = [f"{base}/+/availability" for base in self._bridges if f"{base}/+" in used]
        return self._with_presence(found + list(dict.fromkeys(away)), names)

    # -- private -----------------------------------------------------------------

    def _with_presence(self, patterns: list[str], names: Iterable[str]) -> list[str]:
        """Return patterns, and those by which descriptions say that a device is away."""
        described, ears = self.described(), self._by_name(self._ear_of)
        for name in names:
            field = described.get(name)
            for topic, word in () if field is None else field.away:
                place = ears[name].pattern.place_of(field.topic) if field else None
                if place is None or not self._is_asked(topic):
                    continue
                found = presence_pattern(topic, word, place, list(map(TopicPattern, patterns)))
                patterns += [] if found is None else [found]
        return patterns

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
            return self._listen_by(first_level(topic))
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
            if retained and len(self._retained) < MOST_NAMES:
                self._retained[name] = None
                self._ear_of.setdefault(name, ear)

    def _whole(self, ear: _Ear, topic: str, path: str) -> str:
        """Return the whole name of a number, and remember the short one."""
        whole, place = name_of(ear.pattern.whole_place_of(topic), path), ear.pattern.place_of(topic)
        if place is not None and len(self._short) < MOST_SHORT:
            self._short[whole] = name_of(place, path)
        return whole

    def _by_name(self, found: Mapping[str, Value]) -> dict[str, Value]:
        """Return what is known by whole names by those that it gets."""
        short, ears, wholes = self._short, self._ear_of, defaultdict[str, list[str]](list)
        for whole in ears:
            wholes[short.get(whole, whole)].append(whole)
        alike = {ears[each].text for several in wholes.values() if several[1:] for each in several}
        return {
            each if each in ears and ears[each].text in alike else short.get(each, each): value
            for each, value in found.items()
        }
