"""sample(): a configuration with every setting, made from the settings' own docstrings.

The file `sample.toml` beside a program's settings has examples, in paragraphs that can be used
together. A line that begins with `#` without a space is a setting.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import msgspec
from msgspec.structs import fields

from submerge_client.config.removed import is_listed
from submerge_client.config.sections import Section, choices, sections_of
from submerge_client.config.tomlfile import quoted

HEADER = re.compile(r"#?\[+([\w.]+)\]+$")
SETTING = re.compile(r"#?(\w+) = ")
ENTRY = re.compile(r"^(\w+(?:, \w+)*) : (.*(?:\n {4}.*)*)", re.MULTILINE)
WIDTH = 100


def sample(root: type[Section]) -> str:
    examples = Path(inspect.getfile(root)).with_name("sample.toml").read_text(encoding="utf-8")
    lines = list(_in_sections(root, examples))
    named = {(section, found[1]) for section, line in lines if (found := SETTING.match(line))}
    shown, out = set[str](), list[str]()
    for (section, line), (following, next_line) in zip(lines, [*lines[1:], lines[-1]], strict=True):
        if header := HEADER.match(line):
            for text in _about(section, root, header[1]):
                out += _comment(text, shown)
        elif setting := SETTING.match(line):
            out += _comment(_purpose(section, setting[1]), shown)
        out.append(line)
        # After the first settings of a section come its others.
        if not line.startswith("# ") and (not next_line or following is not section):
            for name, default in _defaults(section):
                if (section, name) not in named:
                    named.add((section, name))
                    out += [*_comment(_purpose(section, name), shown), f"#{name} = {default}"]
    return "\n".join(out)


def _in_sections(root: type[Section], examples: str) -> Iterator[tuple[type[Section], str]]:
    """Yield each line of examples with the section that it belongs to."""
    section, lines = root, examples.splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if header := HEADER.match(line):
            kind = re.match(r'#?kind = "(\w+)"', following)
            section = _inside(root, header[1], kind and kind[1])
        yield section, line
    yield section, ""


def _inside(root: type[Section], place: str, tag: str | None = None) -> type[Section]:
    """Return the section at `groups.pumps.schema`; of several, the one with a tag, or the first."""
    section, keys = root, iter(place.split("."))
    for key in keys:
        (kind,) = (field.type for field in fields(section) if field.name == key)
        if get_origin(kind) is dict:
            next(keys, None)
        tagged = _sections(kind)
        section = tagged.get(tag or "", next(iter(tagged.values())))
    return section


def _sections(kind: Any) -> dict[str, type[Section]]:
    """Return the sections that a field may hold, by tag; of a list or a table, its values."""
    if get_origin(kind) in (dict, tuple):
        kind = get_args(kind)[get_origin(kind) is dict]
    return sections_of(kind)[1]


@cache
def _entries(section: type[Section]) -> dict[str, str]:
    """Return what a section and those that it is made of say of their settings."""
    found: dict[str, str] = {}
    for each in reversed(section.__mro__):
        for names, text in ENTRY.findall(inspect.cleandoc(each.__doc__ or "")):
            found |= dict.fromkeys(names.split(", "), text)
    return found


def _purpose(section: type[Section], name: str) -> str:
    """Return what a setting is for, and its choices."""
    text = _entries(section).get(name, "")
    for field in fields(section):
        if field.name == name:
            kinds = [kind for kind in choices(field.type) if get_origin(kind) is Literal]
            words = [quoted(word) for kind in kinds for word in get_args(kind)]
            if words and not all(word in text for word in words):
                text += f" One of {', '.join(words)}."
    return text


def _about(section: type[Section], root: type[Section], place: str) -> tuple[str, str]:
    """Return what a section is for: in the words of the one that it is in, and in its own."""
    outer, _, name = place.rpartition(".")
    entry = _entries(_inside(root, outer) if outer else root).get(name, "")
    own = ENTRY.split(inspect.cleandoc(section.__doc__ or ""))[0]
    return entry if entry.endswith(".") else "", own


def _comment(text: str, shown: set[str]) -> list[str]:
    """Return a text as lines of a comment, unless it was shown before."""
    if not text or text in shown:
        return []
    shown.add(text)
    words = " ".join(text.replace("`", "").split())
    return textwrap.wrap(
        words, WIDTH, initial_indent="# ", subsequent_indent="# ", break_on_hyphens=False
    )


def _defaults(section: type[Section]) -> Iterator[tuple[str, str]]:
    """Yield the settings that have a default, with it as TOML writes it."""
    for field in fields(section):
        default = field.default
        if field.default_factory is not msgspec.NODEFAULT:
            default = field.default_factory()
        without = default is None or default is msgspec.NODEFAULT
        if not (without or _sections(field.type)) and is_listed(field.name):
            yield field.name, _value(default)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, tuple):
        return f"[{', '.join(map(_value, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_value(each)}' for key, each in value.items())} }}"
    return repr(value) if isinstance(value, int | float) else quoted(str(value))
