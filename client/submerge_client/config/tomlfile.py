"""read(): one TOML file as a configuration, with overrides from the environment.

`SUBMERGE__SECTION__KEY=value` replaces `key` in `[section]`; deeper sections take further `__`. A
value that is valid TOML is read as TOML, any other as text. A mistake in the file or in a
variable is one line: where, what was expected, what came, what to do.
"""

from __future__ import annotations

import logging
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from submerge import UsageError
from submerge_client import logs
from submerge_client.config.decoding import decoded
from submerge_client.config.removed import MOVED, REFUSED_FROM, Removal, tolerate
from submerge_client.config.sections import BadSetting, Key, Section, shown, written
from submerge_client.kit import read_kit

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
    program: str = "client",
    removed: Mapping[str, Removal] = {},
) -> T:
    """Return the configuration of a file and an environment.

    path : Path or str
    kind : The section of the whole file.
    environ : Where overrides are looked for; other variables are ignored.
    program : The program whose `init` prints a sample: `submerge client init`.
    removed : Settings of earlier versions. Each one in the file is a line in the log.

    Raises UsageError for the first mistake, in one line.
    """
    table = _parse(path, program)
    variables = _override(table, environ)
    _name(table, variables)
    for keys, removal in tolerate(table, removed):
        what = f"removed setting {'still used' if removal.used else 'ignored'}"
        at = _where(path, keys, variables)
        logs.say(what, level=logging.WARNING, at=at, hint=removal.hint, refused_from=REFUSED_FROM)
        if removal is MOVED and keys in variables:
            variables["scores", "broker", keys[-1]] = variables[keys]
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
    """Return the file as a table."""
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
