"""Transcript: the events of a simulated fleet, one line each, for people."""

from __future__ import annotations

from collections import deque

from submerge.protocol.messages import Answer, Hello, Incarnation, Join, Joined, Model, Report
from submerge_lab.simulator.hosts import Host


class Transcript:
    """The last lines up to the first violation, or to the end."""

    def __init__(self, most: int) -> None:
        self.lines: deque[str] = deque(maxlen=most)
        self._open = True

    def add(self, time: float, host: Host, what: str, facts: object) -> None:
        """Add a line, unless the transcript is closed."""
        if self._open:
            self.lines.append(f"{time:9.1f} {host!r:<8} {what} {fact_text(facts)}".rstrip())

    def close(self) -> None:
        """Add no more lines: those after a violation would hide what led to it."""
        self._open = False


def fact_text(facts: object) -> str:
    """Return a message or facts, in few words."""
    match facts:
        case dict():
            return ", ".join(f"{name}: {fact_text(value)}" for name, value in facts.items())
        case Hello():
            return f"Hello {facts.node}/{short(facts.incarnation)}"
        case Model():
            return f"Model {facts.version}, {facts.counts.learnt} readings"
        case Join() | Joined() | Report() | Answer():
            stamp = facts.stamp
            words = [type(facts).__name__, f"{stamp.node}/{short(stamp.incarnation)}#{stamp.seq}"]
            if isinstance(facts, Report) and facts.final:
                words.append("final")
            if isinstance(facts, Joined | Answer):
                words.append(facts.reason.name)
            if isinstance(facts, Answer):
                words.append(f"newest #{facts.newest}")
            if not isinstance(facts, Join) and facts.pinned is not None:
                words.append(f"pinned {short(facts.pinned)}")
            if not isinstance(facts, Answer) and facts.fence:
                words.append(f"fence {facts.fence.hex()[:4]}")
            return " ".join(words)
        case _:
            return f"{facts}"


def short(incarnation: Incarnation) -> str:
    """Return a short form of an incarnation, for people."""
    return f"{incarnation.nonce % 0xFFF1:04x}"
