"""Log lines of a program: what happened, and its facts as fields; as text or JSON."""

from __future__ import annotations

import json
import logging
import math
import sys
import time
from typing import Any, TextIO

from submerge.protocol.machine import Level, Note
from submerge.protocol.messages import Report

LEVELS: dict[Level, int] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
}

AGAIN_S = 60.0

log = logging.getLogger("submerge")
log.addHandler(logging.NullHandler())  # commands without a log write nothing


def begin(level: str, *, as_json: bool = False, stream: TextIO | None = None) -> None:
    """Send log lines to a stream, standard error by default."""
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.setFormatter(_Json() if as_json else _Text())
    log.handlers[:] = [handler]
    log.setLevel(level.upper())
    log.propagate = False


def say(what: str, /, *, level: Level = "info", **facts: object) -> None:
    log.log(LEVELS[level], "%s", what, extra={"facts": facts})


class Notes:
    """Logs the notes of one machine; it repeats the same note after a minute at the soonest."""

    def __init__(self) -> None:
        self._last: tuple[str, str] = "", ""
        self._at = -math.inf

    def write(self, note: Note, steady: float) -> None:
        text = note.what, repr(note.facts)
        if text == self._last and steady - self._at < AGAIN_S:
            return
        self._last, self._at = text, steady
        say(note.what, level=note.level, **note.facts)


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
    """Return a fact as text on one line: foreign text cannot begin another."""
    value = plain(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, str) and value.isprintable() and " " not in value and value:
        return value
    # Letters of any language stay; characters that do not print are escaped.
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)
