"""Histories: what was learnt elsewhere, in one group of a root (docs/decisions/0043)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from submerge.protocol.history import Chunk, History
from submerge.protocol.machine import Key, Records
from submerge.protocol.messages import Counts, ScoreSketches

MOST_HISTORIES = 64  # of a group: each is merged again with every change of what a root holds


class Histories:
    """The histories of one group; `changes` takes records to keep, None to delete."""

    def __init__(self, group: str) -> None:
        self.changes: dict[Key, Any] = {}
        self._group = group
        self._by_name: dict[str, History] = {}

    @property
    def by_name(self) -> Mapping[str, History]:
        return {name: self._by_name[name] for name in sorted(self._by_name)}

    def load(self, records: Records) -> None:
        for key, record in records.items():
            match key:
                case ("history", self._group, name):
                    self._by_name[name] = record

    def put(self, history: History) -> tuple[str, ...]:
        """Take a history in; return the names of those whose place it takes."""
        replaced = self.covered_by(history)
        for name in replaced:
            self.remove(name)
        self._by_name[history.name] = self.changes[self._key(history.name)] = history
        return replaced

    def remove(self, name: str) -> bool:
        if self._by_name.pop(name, None) is None:
            return False
        self.changes[self._key(name)] = None
        return True

    def covered_by(self, history: History) -> tuple[str, ...]:
        """Return the names of those whose place a history takes, and itself."""
        return tuple(
            name
            for name, held in self.by_name.items()
            # Of an earlier schema, also those that share rows: should the group go back to that
            # schema, the rows would count twice.
            if (_covers(history, held) if _alike(history, held) else _shares(history, held))
        )

    def later_than(self, history: History) -> tuple[str, ...]:
        """Return the names of those of the same fleet that are of its version, or later."""
        return tuple(
            name
            for name, held in self.by_name.items()
            if _alike(history, held)
            and held.origin == history.origin != ""
            and held.model.version >= history.model.version
        )

    def holders(self, chunks: Iterable[Chunk]) -> Mapping[bytes, str]:
        """Return which of some chunks are held, by key, and the name of the history that does."""
        held = {each.key: name for name, one in self.by_name.items() for each in one.passed_on}
        return {chunk.key: held[chunk.key] for chunk in chunks if chunk.key in held}

    def of(self, fingerprint: str) -> list[History]:
        """Return those of a schema, in the order of their names."""
        return [each for each in self.by_name.values() if each.model.fingerprint == fingerprint]

    def counts(self, fingerprint: str) -> Counts:
        return total_of(each.model.counts for each in self.of(fingerprint))

    def sketches(self, fingerprint: str) -> list[ScoreSketches]:
        return [each.sketches for each in self.of(fingerprint) if each.sketches is not None]

    def rank(self, fingerprint: str) -> int:
        """Return the rank of the one with the most rows; 0 without any."""
        ranked = [(each.model.counts.learnt, each.model.rank) for each in self.of(fingerprint)]
        return max(ranked, default=(0, 0))[1]

    def _key(self, name: str) -> Key:
        return "history", self._group, name


def _alike(history: History, other: History) -> bool:
    """Return whether both are of one schema: only then both count."""
    return history.model.fingerprint == other.model.fingerprint


def _covers(history: History, other: History) -> bool:
    if history.origin != other.origin:
        return False
    if history.origin:
        return other.model.version <= history.model.version
    return other.keys <= history.keys


def _shares(history: History, other: History) -> bool:
    ours, theirs = ({chunk.key for chunk in each.passed_on} for each in (history, other))
    return not ours.isdisjoint(theirs)


def total_of(parts: Iterable[Counts]) -> Counts:
    total = Counts()
    for part in parts:
        total = total + part
    return total
