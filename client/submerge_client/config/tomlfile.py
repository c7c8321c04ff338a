"""read(): one TOML file, and the environment over it, as a configuration.

`SUBMERGE__SECTION__KEY=value` takes the place of `key` in `[section]`; deeper sections take
further `__`. A value that reads as TOML is taken as such, else as text. Whatever is wrong,
with the file or with a variable, is one line: where, what was expected, what came, what to do.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar

from submerge import UsageError
from submerge_client.config.decoding import decoded
from submerge_client.config.hints import hint
from submerge_client.config.sections import (
    BadSetting,
    Given,
    Key,
    Section,
    UnknownSetting,
    shown,
    written,
)
from submerge_client.kit import read_kit

PREFIX = "SUBMERGE__"

T = TypeVar("T", bound=Section)


def read(
    path: Path | str, kind: type[T], environ: Mapping[str, str], *, program: str = "client"
) -> T:
    """Return the configuration that a file and an environment describe.

    Parameters
    ----------
    path : Path or str
    kind : type
        The section that the whole file is.
    environ : mapping of str to str
        Where overrides are looked for; other variables do not matter.
    program : str
        Whose `init` prints a sample: `submerge client init`.

    Raises
    ------
    UsageError
        For the first mistake, in one line.
    """
    table = _parsed(path, program)
    variables = _override(table, environ)
    _name(table)
    try:
        return decoded(table, kind)
    except BadSetting as error:
        message = error.message
        if isinstance(error, UnknownSetting):
            message += f"; {hint(kind, error)}"
        where = _where(path, error.keys, variables)
        raise _line(f"{where}: {message}") from error.__cause__


def _parsed(path: Path | str, program: str) -> dict[str, Any]:
    """The file as a table."""
    sample = f"submerge {program} init > {program}.toml"
    try:
        # Notepad puts a mark in front that TOML does not know.
        text = Path(path).read_bytes().decode("utf-8-sig")
        return tomllib.loads(text)
    except FileNotFoundError:
        message = f"expected a configuration, got no such file; write one: {sample}"
        raise _line(f"{path}: {message}") from None
    except OSError as error:
        raise _line(f"{path}: expected a file to read, got: {error.strerror}") from error
    except UnicodeDecodeError as error:
        n = error.object.count(b"\n", 0, error.start) + 1
        raise _line(f"{path}: line {n}: expected UTF-8, got other bytes; save it as such") from None
    except tomllib.TOMLDecodeError as error:
        raise _line(f"{path}: {_not_toml(text, str(error))}") from None


def _not_toml(text: str, why: str) -> str:
    found = re.search(r" \(at line (\d+), column \d+\)$", why)
    # The parser says "at end of document" where a text has no last line break.
    n = int(found[1]) if found else text.count("\n") + 1
    why = why[: found.start()] if found else why
    line = (text.splitlines() or [""])[n - 1 : n]
    got = shown(line[0].strip()) if line else "the end of the file"
    return f"line {n}: expected TOML, got {got}: {why}; text needs quotes, and a key comes once"


def _override(table: dict[str, Any], environ: Mapping[str, str]) -> dict[tuple[Key, ...], str]:
    """Put the environment's values into a table; return which variable brought which key."""
    variables: dict[tuple[Key, ...], str] = {}
    # Sorted, a whole section comes before what is set in it.
    for variable in sorted(environ):
        if not variable.startswith(PREFIX):
            continue
        *sections, last = variable.removeprefix(PREFIX).lower().split("__")
        place, keys = table, tuple[Key, ...]()
        for section in sections:
            key = _spelt(section, place)
            keys = (*keys, key)
            if key not in place:
                place[key], variables[keys] = {}, variable
            inner = place[key]
            inner = inner.parsed if isinstance(inner, Given) else inner
            if not isinstance(inner, dict):
                message = f"expected {written(keys)} to be a section, got {shown(inner)}"
                raise _line(f"{variable}: {message}; take the variable away")
            place = inner
        key = _spelt(last, place)
        place[key] = Given(environ[variable], _value(environ[variable]))
        variables[*keys, key] = variable
    return variables


def _name(table: dict[str, Any]) -> None:
    """Take the node's name from its kit, if nothing else says it: one file makes a device."""
    kit = table.get("kit")
    kit = kit.text if isinstance(kit, Given) else kit
    if "node" not in table and isinstance(kit, str):
        table["node"] = read_kit(Path(kit)).node


def _spelt(name: str, place: dict[str, Any]) -> str:
    """A key as the file spells it: a variable has no case, and neither `-` nor `.`."""
    alike = (key for key in place if re.sub("[-.]", "_", key.lower()) == name)
    return next(alike, name)


def _value(text: str) -> object:
    """A value as TOML, or the text itself."""
    try:
        table = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    # More keys: the text has lines of its own.
    return table["value"] if len(table) == 1 else text


def _where(
    path: Path | str, keys: tuple[Key, ...], variables: Mapping[tuple[Key, ...], str]
) -> str:
    """Where a setting stands: a variable, inside of one, or the file."""
    for n in range(len(keys), 0, -1):
        if keys[:n] in variables:
            inside = f": {written(keys)}" if n < len(keys) else ""
            return f"{variables[keys[:n]]}{inside}"
    return f"{path}: {written(keys)}" if keys else str(path)


def _line(text: str) -> UsageError:
    return UsageError(" ".join(text.split()))
