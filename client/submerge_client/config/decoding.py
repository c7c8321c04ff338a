"""decoded(): a table of TOML as the section that it should be.

Table and types are walked side by side, so that whatever is wrong comes with its place, in
TOML's own words. Types are those that a configuration needs: sections, tables and lists of
them, unions of sections that one key tells apart, and plain values, which msgspec judges.
"""

from __future__ import annotations

import math
import types
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, Union, get_args, get_origin

import msgspec
from msgspec.structs import fields

from submerge import UsageError
from submerge_client.config.sections import (
    BadSetting,
    Given,
    Key,
    Section,
    UnknownSetting,
    refusal,
    shown,
)

T = TypeVar("T", bound=Section)


def decoded(table: dict[str, Any], kind: type[T]) -> T:
    """Return a table as a section.

    Raises
    ------
    BadSetting
        For the first setting that cannot be.
    """
    known = {field.name: field for field in fields(kind)}
    settings = {key: value for key, value in table.items() if key != tag_field(kind)}
    for key in settings:
        if key not in known:
            raise UnknownSetting((key,), kind)
    for field in known.values():
        if field.required and field.name not in settings:
            table_wanted = _wanted(field.type) == _TABLE
            hint = f"add [{field.name}]" if table_wanted else f"add {field.name} = ..."
            raise refusal(field.name, expected=_wanted(field.type), got="nothing", hint=hint)
    values = {key: _at(key, value, known[key].type) for key, value in settings.items()}
    try:
        return kind(**values)
    except BadSetting:
        raise
    except UsageError as error:
        # The core's own words: they have no place yet.
        raise BadSetting((), str(error)) from error


def choices(kind: Any) -> tuple[Any, ...]:
    """Return the types that a field may have; TOML has no None."""
    if get_origin(kind) in (Union, types.UnionType):
        return tuple(choice for choice in get_args(kind) if choice is not types.NoneType)
    return (kind,)


def is_section(kind: Any) -> bool:
    """Return whether a type is a section."""
    return isinstance(kind, type) and issubclass(kind, Section)


def tag_field(kind: type[Section]) -> str | None:
    """Return the key that tells a section from its alternatives; None if it has none."""
    return kind.__struct_config__.tag_field


def tag(kind: type[Section]) -> str:
    """Return what that key says of this one."""
    return str(kind.__struct_config__.tag)


def nearest(said: str, known: Iterable[str]) -> str | None:
    """Return the word that was most likely meant; None where that would be a guess."""
    import difflib  # late: most configurations have no mistake

    near = difflib.get_close_matches(said, known, n=1, cutoff=0.75)
    return near[0] if near else None


def _at(key: Key, value: Any, kind: Any) -> Any:
    try:
        return _value(value, kind)
    except BadSetting as error:
        raise error.under(key) from error.__cause__


def _value(value: Any, kind: Any) -> Any:
    if isinstance(value, Given):
        try:
            return _value(value.parsed, kind)
        except BadSetting:
            # A node may be called 12, and a password's file 2024-01-01.
            if isinstance(value.parsed, str) or not _fits(value.text, kind):
                raise
            return _value(value.text, kind)
    for choice in choices(kind):
        if isinstance(value, dict) and is_section(choice):
            return decoded(value, _meant(value, kind))
        if isinstance(value, dict) and get_origin(choice) is dict:
            name, inner = get_args(choice)
            return {_at(key, key, name): _at(key, item, inner) for key, item in value.items()}
        if isinstance(value, list) and get_origin(choice) is tuple:
            inner = get_args(choice)[0]
            return tuple(_at(i, item, inner) for i, item in enumerate(value))
    if not _fits(value, kind):
        raise refusal(expected=_wanted(kind), got=shown(value), hint=_hint(value, kind))
    return _converted(value, kind)


def _meant(table: dict[str, Any], kind: Any) -> type[Section]:
    """The section that a table is, of those that it may be."""
    sections: list[type[Section]] = [choice for choice in choices(kind) if is_section(choice)]
    key = tag_field(sections[0])
    if key is None:
        return sections[0]
    by_tag = {tag(section): section for section in sections}
    said = table.get(key)
    said = said.parsed if isinstance(said, Given) else said
    if isinstance(said, str) and said in by_tag:
        return by_tag[said]
    got = shown(said) if key in table else "nothing"
    hint = _meant_word(said, list(by_tag))
    raise refusal(key, expected=_listed(map(shown, by_tag)), got=got, hint=hint)


def _fits(value: Any, kind: Any) -> bool:
    try:
        result = _converted(value, kind)
    except msgspec.ValidationError:
        return False
    return not isinstance(result, float) or math.isfinite(result)


def _converted(value: Any, kind: Any) -> Any:
    return msgspec.convert(value, kind, dec_hook=_path)


def _path(kind: type, value: Any) -> Path:
    if kind is not Path:
        raise NotImplementedError(f"a setting cannot be of {kind}")
    if not isinstance(value, str) or not value:
        raise ValueError("expected a path")
    return Path(value)


# -- words -----------------------------------------------------------------------------


_TABLE = "a table"
_WORDS = {
    str: "text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Path: "a path in quotes",
}


def _wanted(kind: Any) -> str:
    """A type in the words of whoever writes TOML."""
    return _listed(word for choice in choices(kind) for word in _words(choice))


def _words(kind: Any) -> Iterator[str]:
    origin = get_origin(kind)
    if origin is Annotated:
        _, meta = get_args(kind)
        yield meta.description
    elif origin is Literal:
        yield from map(shown, get_args(kind))
    elif origin is tuple:
        yield f"a list of {_wanted(get_args(kind)[0])}"
    else:
        yield _WORDS.get(kind, _TABLE)


def _listed(words: Iterator[str]) -> str:
    *others, last = dict.fromkeys(words)
    return f"{', '.join(others)} or {last}" if others else last


def _hint(value: Any, kind: Any) -> str:
    """What to do about the mistakes that are made most."""
    lists = [get_args(choice)[0] for choice in choices(kind) if get_origin(choice) is tuple]
    if isinstance(value, dict) and any(map(is_section, lists)):
        return "put its name in [[ ]], for there may be several"
    if isinstance(value, dict | list):
        return ""
    if lists:
        return "put it in [ ]"
    if not isinstance(value, str):
        return "put it in quotes" if _fits(str(value), kind) else ""
    if any(_fits(plain, kind) for plain in _plain(value)):
        return "leave the quotes out"
    words = [choice for choice in choices(kind) if get_origin(choice) is Literal]
    return _meant_word(value, [word for choice in words for word in get_args(choice)])


def _meant_word(said: object, known: list[str]) -> str:
    near = nearest(said, known) if isinstance(said, str) else None
    return "" if near is None else f"did you mean {shown(near)}?"


def _plain(text: str) -> Iterator[object]:
    """What a text would be without its quotes."""
    if text in ("true", "false"):
        yield text == "true"
    for number in (int, float):
        try:
            yield number(text)
        except ValueError:
            continue
