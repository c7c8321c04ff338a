"""hint(): which setting was meant by one that does not exist.

Most often it is in the wrong section: in TOML, all settings after a `[section]` belong to it.
Otherwise it is misspelt.
"""

from __future__ import annotations

import types
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple, Union, get_args, get_origin

from msgspec.structs import fields

from submerge_client.config.removed import is_listed
from submerge_client.config.sections import Section, shown


def choices(kind: Any) -> tuple[Any, ...]:
    """Return the types that a field may have; TOML has no None."""
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(choice for choice in get_args(kind) if choice is not types.NoneType)
    return (kind,)


def is_section(kind: Any) -> bool:
    """Return whether a type is a section."""
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
    """The right place of a setting."""

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
    """Return what to do about an unknown setting."""
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
