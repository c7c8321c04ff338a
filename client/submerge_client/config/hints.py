"""hint(): what somebody meant who wrote a setting that does not exist.

Most often it stands in the wrong section: in TOML, whatever follows a `[section]` belongs
to it. Otherwise it is misspelt.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, get_args, get_origin

from msgspec.structs import fields

from submerge_client.config.decoding import choices, is_section, nearest, tag, tag_field
from submerge_client.config.sections import Section, UnknownSetting, shown


class _Place(NamedTuple):
    """Where a setting is at home."""

    keys: tuple[str, ...]
    section: type[Section]
    setting: str
    is_section: bool

    def __str__(self) -> str:
        if self.is_section:
            return f"as [{'.'.join((*self.keys, self.setting))}]"
        if not self.keys:
            return "at the top of the file, above the first [section]"
        key = tag_field(self.section)
        only = f" with {key} = {shown(tag(self.section))}" if key else ""
        return f"in [{'.'.join(self.keys)}]{only}"


def hint(root: type[Section], error: UnknownSetting) -> str:
    """Return what to do about an unknown setting."""
    said = str(error.keys[-1])
    own = [field.name for field in fields(error.section)]
    places = [place for place in _places(root, ()) if place.section is not error.section]
    exact = list(dict.fromkeys(str(place) for place in places if place.setting == said))
    if exact:
        return f"it belongs {' or '.join(exact[:3])}"
    near = nearest(said, own)
    if near is not None:
        return f"did you mean {shown(near)}?"
    near = nearest(said, [place.setting for place in places])
    if near is not None:
        place = next(place for place in places if place.setting == near)
        return f"did you mean {shown(near)} {place}?"
    return f"known here: {', '.join(own) or 'none'}"


def _places(section: type[Section], keys: tuple[str, ...]) -> Iterator[_Place]:
    """Every setting of a section and of those inside of it."""
    for field in fields(section):
        inner = list(_sections(field.type))
        yield _Place(keys, section, field.name, is_section=bool(inner))
        for more, kind in inner:
            yield from _places(kind, (*keys, field.name, *more))


def _sections(kind: Any) -> Iterator[tuple[tuple[str, ...], type[Section]]]:
    """Sections that a field may hold, and by what further key."""
    for choice in choices(kind):
        if is_section(choice):
            yield (), choice
        elif get_origin(choice) is dict and is_section(get_args(choice)[1]):
            yield ("NAME",), get_args(choice)[1]
