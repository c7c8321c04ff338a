"""Sections of a configuration: frozen structs, and the one-line error for a wrong setting."""

from __future__ import annotations

import json
import sys
import types
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

import msgspec
from msgspec import Meta
from msgspec.structs import fields

from submerge import UsageError
from submerge.protocol.names import NAME, NAME_RULE, RESERVED
from submerge_client.config.removed import is_listed

MOST = sys.float_info.max

Key = str | int  # the key of a table, or the index in a list

SHOWN = {"shown": True}
"""Marks text that other machines may read; text without the mark is shown to none."""

Name = Annotated[
    str, Meta(pattern=rf"^{NAME}\Z", description=f"a name in quotes, {NAME_RULE}", extra=SHOWN)
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
It is shown to no other machine (`submerge_client.replies`)."""

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
    """A setting is wrong, at `keys` in its section: what was expected, what came, what to do."""

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


def choices(kind: Any) -> tuple[Any, ...]:
    """Return the types that a field may have; TOML has no None."""
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(choice for choice in get_args(kind) if choice is not types.NoneType)
    return (kind,)


def is_section(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Section)


def sections_of(kind: Any) -> tuple[str | None, dict[str, type[Section]]]:
    """Return the tag key of a type, and its sections by tag."""
    found: list[type[Section]] = [each for each in choices(kind) if is_section(each)]
    key = found[0].__struct_config__.tag_field if found else None
    return key, {str(each.__struct_config__.tag or ""): each for each in found}


def nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that was most likely meant; None without a close one."""
    import difflib  # late: most configurations have no mistake

    near = difflib.get_close_matches(word, known, n=1, cutoff=0.75)
    return near[0] if near else None


class _Place(NamedTuple):
    keys: tuple[str, ...]
    section: type[Section]
    setting: str
    is_section: bool

    def __str__(self) -> str:
        if self.is_section:
            return f"as [{'.'.join((*self.keys, self.setting))}]"
        if not self.keys:
            return "at the top of the file, above the first [section]"
        key, tagged = sections_of(self.section)
        only = f" with {key} = {shown(next(iter(tagged)))}" if key else ""
        return f"in [{'.'.join(self.keys)}]{only}"


def hint(root: type[Section], section: type[Section], key: str) -> str:
    own = [field.name for field in fields(section) if is_listed(field.name)]
    places = [place for place in _places(root, ()) if place.section is not section]
    exact = list(dict.fromkeys(str(place) for place in places if place.setting == key))
    if exact:
        return f"it belongs {' or '.join(exact[:3])}"
    near = nearest(key, own)
    if near is not None:
        return f"did you mean {shown(near)}?"
    near = nearest(key, [place.setting for place in places])
    if near is not None:
        place = next(place for place in places if place.setting == near)
        return f"did you mean {shown(near)} {place}?"
    return f"known here: {', '.join(own) or 'none'}"


def _places(section: type[Section], keys: tuple[str, ...]) -> Iterator[_Place]:
    """Yield every setting of a section and of the sections inside it."""
    for field in fields(section):
        if not is_listed(field.name):
            continue
        inner = list(_sections(field.type))
        yield _Place(keys, section, field.name, is_section=bool(inner))
        for more, kind in inner:
            yield from _places(kind, (*keys, field.name, *more))


def _sections(kind: Any) -> Iterator[tuple[tuple[str, ...], type[Section]]]:
    """Yield the sections that a field may hold, and their further keys."""
    for choice in choices(kind):
        if is_section(choice):
            yield (), choice
        elif get_origin(choice) is dict and is_section(get_args(choice)[1]):
            yield ("NAME",), get_args(choice)[1]
