"""Log lines of a program: what happened, and its facts as fields; text for people, or JSON.

The machines say nothing by themselves: their notes come here, once, from the two shells.
"""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from typing import Any, TextIO

from submerge.protocol.machine import Note
from submerge.protocol.messages import Report

LEVELS = ("debug", "info", "warning", "error")

LOUD = {
    *("join refused", "report refused", "schema refused"),
    *("another parent answers", "copy suspected", "lost"),
    "broker unreachable, trying on",
    *("node quarantined", "quarantine is full"),
}
"""Notes that somebody should look into."""

AGAIN_S = 60.0

log = logging.getLogger("submerge")
log.addHandler(logging.NullHandler())  # commands that have no log say nothing


def begin(level: str, *, as_json: bool = False, stream: TextIO | None = None) -> None:
    """Send log lines to a stream, standard error by default."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(_Json() if as_json else _Text())
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False


def say(what: str, /, *, level: int = logging.INFO, **facts: Any) -> None:
    """Write one line."""
    log.log(level, "%s", what, extra={"facts": facts})


class Notes:
    """What one machine has to say; the same thing again, a minute later at the soonest."""

    def __init__(self) -> None:
        self._said: tuple[str, str] = "", ""
        self._at = -math.inf

    def tell(self, note: Note, steady: float) -> None:
        """Write a note."""
        said = note.what, repr(note.facts)
        if said == self._said and steady - self._at < AGAIN_S:
            return
        self._said, self._at = said, steady
        level = logging.WARNING if note.what in LOUD else logging.INFO
        log.log(level, "%s", note.what, extra={"facts": note.facts})


def remark(what: str, /, **facts: object) -> None:
    """Write one line, for parts of the world that only have remarks."""
    level = logging.WARNING if what in LOUD else logging.INFO
    log.log(level, "%s", what, extra={"facts": facts})


def plain(value: Any) -> Any:
    """Return a fact as JSON has it."""
    if isinstance(value, Report):
        return f"{value.stamp.incarnation}, report {value.stamp.seq}"
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return {name: plain(each) for name, each in value._asdict().items()}
    if isinstance(value, tuple | list):
        return [plain(each) for each in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


class _Text(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        at = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(record.created))
        facts = getattr(record, "facts", {})
        fields = "".join(f" {name}={_shown(value)}" for name, value in facts.items())
        return f"{at} {record.levelname.lower():<7} {record.getMessage()}{fields}"


class _Json(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        facts = {name: plain(value) for name, value in getattr(record, "facts", {}).items()}
        line = {"at": round(record.created, 3), "level": record.levelname.lower()}
        return json.dumps(line | {"what": record.getMessage()} | facts)


def _shown(value: Any) -> str:
    """A fact on one line: foreign text may not begin another."""
    value = plain(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str) and value.isprintable() and " " not in value and value:
        return value
    # Letters of any language; what does not print is escaped, and begins no line.
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
