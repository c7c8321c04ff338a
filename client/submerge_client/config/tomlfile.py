"""read(): one TOML file as a configuration, with overrides from the environment.

`SUBMERGE__SECTION__KEY=value` replaces `key` in `[section]`; deeper sections take further `__`. A
value that is valid TOML is read as TOML, any other as text.
"""

from __future__ import annotations

import json
import os
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec.structs import fields

from submerge import UsageError
from submerge_client import logs
from submerge_client.config.removed import HINT, REFUSED_FROM, leaving
from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.config.sections import (
    BadSetting,
    Key,
    Section,
    choices,
    hint,
    is_section,
    nearest,
    refusal,
    sections_of,
    shown,
    written,
)
from submerge_client.kit import read_kit


def quoted(text: str) -> str:
    """Return a text as TOML writes it, in one line; characters beyond ASCII stay as they are."""
    # JSON's form, but for DEL, which TOML has no place for as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def schema_lines(schema: SchemaConfig) -> str:
    """Return the settings of a section `[schema]`, without features. Defaults are left out."""
    lines = [f"center = {quoted(schema.center)}", f"scaling = {quoted(schema.scaling)}"]
    if schema.lags > 1:
        lines.append(f"lags = {schema.lags}")
    if schema.half_life_s is not None:
        lines.append(f"half_life_s = {schema.half_life_s!r}")
    lines += [
        "channels = [",
        *(f"    {channel_table(channel)}," for channel in schema.tables),
        "]\n",
    ]
    return "\n".join(lines)


def channel_table(channel: ChannelConfig) -> str:
    """Return a channel as a table: as "name [unit]" some names would be read in another way."""
    parts = [f"name = {quoted(channel.name)}"]
    if channel.unit:
        parts.append(f"unit = {quoted(channel.unit)}")
    if channel.offset is not None and channel.scale is not None:
        # The shortest digits that are read as the same number.
        parts += [f"offset = {float(channel.offset)!r}", f"scale = {float(channel.scale)!r}"]
    return f"{{ {', '.join(parts)} }}"


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


GIVEN = {"kit", "ca", "cert", "key", "password_file", "token_file", "urls_file"}
GIVEN |= {"roster", "aggregators", "revoked", "tokens", "landmarks"}
"""Files that somebody has written: they may stand beside the configuration."""


def _beside(table: Any, folder: Path) -> None:
    """Have files that are not in the working directory be those beside the configuration."""
    for key, value in table.items() if isinstance(table, dict) else enumerate(table):
        if isinstance(value, dict | list):
            _beside(value, folder)
        elif key in GIVEN and isinstance(value, str) and not os.path.exists(value):
            beside = os.path.join(folder, value)
            table[key] = beside if os.path.exists(beside) else value


def _fits(value: Any, kind: Any) -> bool:
    try:
        _convert(value, kind)
    except msgspec.ValidationError:
        return False
    return True


def _translate(error: msgspec.ValidationError, table: dict[str, Any], root: Any) -> BadSetting:
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


PREFIX = "SUBMERGE__"

T = TypeVar("T", bound=Section)


class Variable(NamedTuple):
    """The environment variable of a setting, and its value as text."""

    name: str
    text: str


Variables = dict[tuple[Key, ...], Variable]


def read(
    path: Path | str,
    kind: type[T],
    environ: Mapping[str, str],
    *,
    program: str = "client",  # whose `init` prints a sample
    removed: Sequence[str] = (),
) -> T:
    """Return the configuration of a file and an environment; UsageError for the first mistake."""
    table = _parse(path, program)
    variables = _override(table, environ)
    _beside(table, Path(path).parent)
    _name(table, variables)
    for keys in leaving(table, removed):
        at, what = _where(path, keys, variables), "removed setting still used"
        logs.say(what, level="warning", at=at, hint=HINT, refused_from=REFUSED_FROM)
    try:
        return _decode(table, kind, variables)
    except BadSetting as error:
        raise _line(f"{_where(path, error.keys, variables)}: {error.message}") from error.__cause__


def _decode(table: dict[str, Any], kind: type[T], variables: Variables) -> T:
    """Return the section. A variable whose value does not fit is tried as text."""
    try:
        return decoded(table, kind)
    except BadSetting as error:
        if error.keys not in variables:
            raise
        *sections, last = error.keys
        place: Any = table
        for key in sections:
            place = place[key]
        if isinstance(place[last], str):
            raise
        # A node may be called 12, and a password's file 2024-01-01.
        place[last] = variables[error.keys].text
        try:
            return _decode(table, kind, variables)
        except BadSetting as again:
            raise (error if again.keys == error.keys else again) from again.__cause__


def _parse(path: Path | str, program: str) -> dict[str, Any]:
    # `submerge init` writes a file that `up` takes; the others print a sample.
    sample = "submerge init" if program == "up" else f"submerge {program} init > {program}.toml"
    try:
        # Notepad writes a byte order mark, which TOML does not allow.
        text = Path(path).read_bytes().decode("utf-8-sig")
        if "\0" in text:
            raise _line(f"{path}: expected UTF-8, got UTF-16 or other bytes; save it as UTF-8")
        return tomllib.loads(text)
    except FileNotFoundError:
        message = f"expected a configuration, got no such file; write one: {sample}"
        raise _line(f"{path}: {message}") from None
    except OSError as error:
        raise _line(f"{path}: expected a file to read, got: {error.strerror}") from error
    except UnicodeDecodeError as error:
        n = error.object.count(b"\n", 0, error.start) + 1
        raise _line(
            f"{path}: line {n}: expected UTF-8, got other bytes; save it as UTF-8"
        ) from None
    except tomllib.TOMLDecodeError as error:
        raise _line(f"{path}: {_not_toml(text, str(error))}") from None


def _not_toml(text: str, why: str) -> str:
    found = re.search(r" \(at line (\d+), column \d+\)$", why)
    # The parser says "at end of document" where a text has no last line break.
    n = int(found[1]) if found else text.count("\n") + 1
    why = why[: found.start()] if found else why
    line = (text.splitlines() or [""])[n - 1 : n]
    got = shown(line[0].strip()) if line else "the end of the file"
    return f"line {n}: expected TOML, got {got}: {why}; {_cure(line[0] if line else '')}"


def _cure(line: str) -> str:
    """Return what to do about a line that is no TOML, by the mistakes that are usual."""
    value = line.partition("=")[2].strip()
    if "\\" in line:
        return "put text with a backslash in single quotes"
    if value.count('"') % 2 or value.count("'") % 2:
        return "a quote is missing"
    if re.fullmatch(r"-?\d+,\d+", value):
        return "write a decimal point"
    if value.lower() in ("yes", "no", "on", "off", "true", "false"):
        return "write true or false"
    if line.lstrip().startswith("["):
        return "a section comes once: put its settings together"
    return "text needs quotes, and a key comes once"


def _override(table: dict[str, Any], environ: Mapping[str, str]) -> Variables:
    """Put the environment's values into a table; return the variable of each key."""
    variables: Variables = {}
    # Sorted, a whole section comes before the settings in it.
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        *sections, last = variable.removeprefix(PREFIX).lower().split("__")
        place, keys = table, tuple[Key, ...]()
        for section in sections:
            key = _spelling(section, place)
            keys = (*keys, key)
            if key not in place:
                place[key], variables[keys] = {}, Variable(variable, "")
            inner = place[key]
            if not isinstance(inner, dict):
                message = f"expected {written(keys)} to be a section, got {shown(inner)}"
                raise _line(f"{variable}: {message}; take the variable away")
            place = inner
        key = _spelling(last, place)
        place[key] = _value(environ[variable])
        variables[*keys, key] = Variable(variable, environ[variable])
    return variables


def _name(table: dict[str, Any], variables: Variables) -> None:
    """Take the node's name from its kit, if it is not set."""
    given = variables.get(("kit",))
    kit = given.text if given and not isinstance(table["kit"], str) else table.get("kit")
    if "node" not in table and isinstance(kit, str):
        table["node"] = read_kit(Path(kit)).node


def _spelling(name: str, place: dict[str, Any]) -> str:
    """Return a key as the file spells it: a variable has no case, and neither `-` nor `.`."""
    alike = (key for key in place if re.sub("[-.]", "_", key.lower()) == name)
    return next(alike, name)


def _value(text: str) -> object:
    """Return a value as TOML, or the text itself."""
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    # More keys: the text has further lines.
    return table["value"] if len(table) == 1 else text


def _where(path: Path | str, keys: tuple[Key, ...], variables: Variables) -> str:
    """Return the place of a setting: a variable, inside one, or the file."""
    for n in range(len(keys), 0, -1):
        if keys[:n] in variables:
            inside = f": {written(keys)}" if n < len(keys) else ""
            return f"{variables[keys[:n]].name}{inside}"
    return f"{path}: {written(keys)}" if keys else str(path)


def _line(text: str) -> UsageError:
    return UsageError(" ".join(text.split()))
