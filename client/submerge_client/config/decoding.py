"""decoded(): a table of TOML as a section.

msgspec checks the table and gives the path of the first mistake. This module translates it into
one line in the words of TOML: where, what was expected, what came, what to do.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec.structs import fields

from submerge import UsageError
from submerge_client.config.hints import choices, hint, is_section, nearest, sections_of
from submerge_client.config.sections import BadSetting, Key, Section, refusal, shown, written

T = TypeVar("T", bound=Section)

PLACE = re.compile(r"(.*?)(?: - at `(key` in `)?\$(.*)`)?", re.DOTALL)
"""A message of msgspec: what is wrong, whether it is a table's key, and its path."""

STEP = re.compile(r"\.(\w+)|\[(\d+)\]|\[\.\.\.\]")
"""A field, an element of a list, or a value in a table of any names."""


def decoded(table: dict[str, Any], kind: type[T]) -> T:
    """Return a table as a section; raises BadSetting for the first wrong setting."""
    try:
        return cast(T, _convert(table, kind))
    except msgspec.ValidationError as error:
        raise _translate(error, table, kind) from error.__cause__


def _convert(value: Any, kind: Any) -> Any:
    return msgspec.convert(value, kind, dec_hook=_path)


def _path(kind: type, value: Any) -> Path:
    if kind is not Path:
        raise NotImplementedError(f"a setting cannot be of {kind}")
    if not isinstance(value, str) or not value:
        raise ValueError("expected a path")
    return Path(value)


def _fits(value: Any, kind: Any) -> bool:
    try:
        _convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _translate(error: msgspec.ValidationError, table: dict[str, Any], root: Any) -> BadSetting:
    """Return msgspec's error in TOML's words."""
    found = PLACE.fullmatch(str(error))
    message, of_key, path = found.groups() if found else (str(error), None, None)
    keys, value, kind = tuple[Key, ...](), cast(Any, table), root
    for name, index in STEP.findall(path or ""):
        key, value, kind = _inside(value, kind, name, index)
        keys = (*keys, key)
    if isinstance(error.__cause__, BadSetting):
        return error.__cause__.under(*keys)
    if isinstance(error.__cause__, UsageError):
        return BadSetting(keys, str(error.__cause__))
    if of_key:
        kind = get_args(_table_of(kind))[0]
        value = next(key for key in value if not _fits(key, kind))
        keys = (*keys, value)
    elif isinstance(value, dict) and message.startswith("Object"):
        return _wrong_key(keys, value, _meant(value, kind), root, message.split("`")[1])
    return refusal(*keys, expected=_type_words(kind), got=shown(value), hint=_hint(value, kind))


def _inside(value: Any, kind: Any, name: str, index: str) -> tuple[Key, Any, Any]:
    """Return the key of a step, its value, and the type that it should have."""
    if name:
        return name, value.get(name), _settings(_meant(value, kind))[name]
    if index:
        inner = next(get_args(each)[0] for each in choices(kind) if get_origin(each) is tuple)
        return int(index), value[int(index)], inner
    # msgspec does not name the key.
    inner = get_args(_table_of(kind))[1]
    key = next(key for key, item in value.items() if not _fits(item, inner))
    return key, value[key], inner


def _table_of(kind: Any) -> Any:
    return next(each for each in choices(kind) if get_origin(each) is dict)


def _meant(table: dict[str, Any], kind: Any) -> Any:
    """Return the section that a table's tag names; without a valid tag, the whole union."""
    tag, sections = sections_of(kind)
    name = table.get(tag, "") if tag else ""
    return sections.get(name, kind) if isinstance(name, str) else kind


def _settings(section: Any) -> dict[str, Any]:
    """Return the type of each setting, with that of the tag."""
    tag, sections = sections_of(section)
    settings = {field.name: field.type for field in fields(section)} if is_section(section) else {}
    return settings | ({tag: Literal[tuple(sections)]} if tag else {})


def _wrong_key(
    keys: tuple[Key, ...], table: dict[str, Any], section: Any, root: type[Section], missing: str
) -> BadSetting:
    """Return the error for the first unknown key, or else for a missing one."""
    known = _settings(section)
    for key in (key for key in table if key not in known and is_section(section)):
        place = f"a setting of [{written(keys)}]" if keys else "a setting or a [section]"
        meant = hint(root, section, key)
        return refusal(*keys, key, expected=place, got=shown(key), hint=meant)
    wanted = _type_words(known[missing])
    add = f"add [{missing}]" if wanted == _TABLE else f"add {missing} = ..."
    return refusal(*keys, missing, expected=wanted, got="nothing", hint=add)


# -- words -----------------------------------------------------------------------------


_TABLE = "a table"
_WORDS = {
    str: "text in quotes",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    Path: "a path in quotes",
}


def _type_words(kind: Any) -> str:
    """Return a type in the words of TOML."""
    *others, last = dict.fromkeys(word for choice in choices(kind) for word in _words(choice))
    return f"{', '.join(others)} or {last}" if others else last


def _words(kind: Any) -> Iterator[str]:
    origin = get_origin(kind)
    if origin is Annotated:
        yield get_args(kind)[1].description
    elif origin is Literal:
        yield from map(shown, get_args(kind))
    elif origin is tuple:
        yield f"a list of {_type_words(get_args(kind)[0])}"
    else:
        yield _WORDS.get(kind, _TABLE)


def _hint(value: Any, kind: Any) -> str:
    """Return what to do about the most frequent mistakes."""
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
    near = nearest(value, [word for choice in words for word in get_args(choice)])
    return "" if near is None else f"did you mean {shown(near)}?"


def _plain(text: str) -> Iterator[object]:
    """Yield the values that a text would have without its quotes."""
    if text in ("true", "false"):
        yield text == "true"
    for number in (int, float):
        try:
            yield number(text)
        except ValueError:
            continue
