"""Sections of a configuration: frozen structs, and the one-line error for a wrong setting.

A section checks in `__post_init__` how its settings fit together. Its errors get their place in
front on the way up. Nothing here knows of files or of the environment.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from submerge import UsageError
from submerge.protocol.names import NAME, NAME_RULE, RESERVED

MOST = sys.float_info.max

Key = str | int
"""The key of a table, or the index in a list."""

SHOWN = {"shown": True}
"""Marks text that other machines may read; text without the mark is shown to none."""

Name = Annotated[
    str,
    Meta(pattern=rf"^{NAME}\Z", description=f"a name in quotes, {NAME_RULE}", extra=SHOWN),
]
NamePattern = Annotated[
    str,
    Meta(
        pattern=r"^[A-Za-z0-9._*?-]{1,64}\Z",
        description="a name in quotes, or one with * and ?",
        extra=SHOWN,
    ),
]
"""Fits a certificate, a topic and a file."""

NodeName = Annotated[
    str,
    Meta(
        pattern=rf"^(?!(?i:{'|'.join(sorted(RESERVED))})\Z){NAME}\Z",
        description=f"a name in quotes, {NAME_RULE}, and no word of MQTT topics, as `score` is",
        extra=SHOWN,
    ),
]
"""Names a node: below its name are topics of its own."""

Text = Annotated[str, Meta(min_length=1, description="text in quotes", extra=SHOWN)]
AnyText = Annotated[str, Meta(description="text in quotes", extra=SHOWN)]
Secret = Annotated[str, Meta(min_length=1, description="text in quotes")]
"""Text that lets its reader in somewhere, or may: a url that takes posts, an argument of a program.
It is shown to no other machine (`submerge_client.asked.shown_settings`)."""

Whole = Annotated[int, Meta(ge=1, description="a whole number of at least 1")]
Spare = Annotated[int, Meta(ge=0, description="a whole number of at least 0")]
# TOML knows inf and nan, which no setting takes.
Finite = Annotated[float, Meta(ge=-MOST, le=MOST, description="a number")]
Seconds = Annotated[float, Meta(gt=0, le=MOST, description="a time in seconds, above 0")]
NotBelowZero = Annotated[float, Meta(ge=0, le=MOST, description="a number of at least 0")]
AboveZero = Annotated[float, Meta(gt=0, le=MOST, description="a number above 0")]


class Section(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A table of settings."""


class BadSetting(UsageError):
    """A setting is wrong.

    keys : Its place inside the section that refused it.
    message : What was expected, what came, what to do.
    """

    def __init__(self, keys: tuple[Key, ...], message: str) -> None:
        self.keys, self.message = keys, message
        super().__init__(f"{written(keys)}: {message}" if keys else message)

    def under(self, *outer: Key) -> BadSetting:
        """Return the error with the keys of an outer section in front."""
        return BadSetting((*outer, *self.keys), self.message)


@contextmanager
def placed(*keys: Key) -> Iterator[None]:
    """Put keys in front of the errors of the body."""
    try:
        yield
    except BadSetting as error:
        raise error.under(*keys) from error.__cause__


def refusal(*keys: Key, expected: str, got: str, hint: str = "") -> BadSetting:
    """Return the error for a wrong setting."""
    return BadSetting(keys, f"expected {expected}, got {got}" + (f"; {hint}" if hint else ""))


def written(keys: Iterable[Key]) -> str:
    """Return a place as TOML writes it: `groups.pumps.schema.channels[0]`."""
    out = ""
    for key in keys:
        if isinstance(key, int):
            out += f"[{key}]"
        else:
            bare = key.isascii() and key.replace("-", "_").replace("_", "a").isalnum()
            out += ("." if out else "") + (key if bare else shown(key))
    return out


def shown(value: object) -> str:
    """Return a value as TOML writes it, in one short line."""
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, Path):
        value = str(value)
    quoted = isinstance(value, str | bool)
    text = json.dumps(value, ensure_ascii=False) if quoted else str(value)
    return text if len(text) <= 80 else f"{text[:77]}..."
