"""fields_of(): the numbers in a payload, each with its path.

1. A payload is JSON, or a text: a number, or a state such as `on`.
2. An object's keys and an array's indices make the path, joined by dots: `ENERGY.Power`,
   `temperatures.0`. A number alone has the path "".
3. Numbers are read, also where they are written as text. Booleans and other texts are read only
   if `states` gives a number for them; JSON's true and false are the texts `true` and `false`.
4. null, and a text that is neither, is no reading, and no mistake.
5. A message that is deeper, or has more fields or longer names than the limits below, is refused
   whole.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

import msgspec

from submerge_client.sensors.mqtt.decoder import MalformedMessage, check_size, number_of

DEEPEST = 8
"""Levels of objects and arrays in a message."""

MOST_FIELDS = 512
"""Values in a message, of any kind."""

LONGEST_NAME = 128
"""Characters of a field's path, and of a device."""


def content_of(payload: bytes | bytearray) -> Any:
    """Return a payload's content: of JSON, or else its text.

    Raises MalformedMessage if it is neither, or too long.
    """
    check_size(payload)
    try:
        text = bytes(payload).decode().strip()
    except UnicodeDecodeError as error:
        raise MalformedMessage(f"expected text, got other bytes: {error}") from None
    if text[:1] not in ("{", "[", '"'):
        return text
    try:
        return msgspec.json.decode(text)
    except (ValueError, OverflowError, RecursionError) as error:
        raise MalformedMessage(f"expected JSON, got {text[:20]!r}...: {error}") from None


def fields_of(content: Any, states: Mapping[str, float]) -> list[tuple[str, float]]:
    """Return the numbers in a content, each with its path.

    content : As `content_of` returns it.
    states : Numbers for texts, and for `true` and `false`.

    Raises MalformedMessage if it is larger than the limits.
    """
    found = list[tuple[str, float]]()
    for path, value in leaves_of(content):
        number = as_number(value, states)
        if number is not None:
            found.append((path, number))
    return found


def words_of(content: Any) -> list[tuple[str, str]]:
    """Return the booleans and texts in a content that are no numbers, each with its path.

    Raises MalformedMessage as `fields_of`.
    """
    words = list[tuple[str, str]]()
    for path, value in leaves_of(content):
        if isinstance(value, bool):
            words.append((path, "true" if value else "false"))
        elif isinstance(value, str) and value.strip() and number_of(value) is None:
            words.append((path, value.strip()))
    return words


def leaves_of(content: Any) -> list[tuple[str, Any]]:
    """Return the values in a content that have no parts, each with its path.

    Raises MalformedMessage if it is larger than the limits.
    """
    found = list(islice(_leaves(content, "", 0), MOST_FIELDS + 1))
    if len(found) > MOST_FIELDS:
        raise MalformedMessage(f"expected {MOST_FIELDS} fields at most, got more")
    return found


def at(path: Sequence[str], content: Any) -> Any:
    """Return what is at a path in a content; None if there is nothing."""
    for key in path:
        if isinstance(content, dict):
            content = content.get(key)
        elif isinstance(content, list) and key.isdecimal() and int(key[:4]) < len(content):
            content = content[int(key[:4])]
        else:
            return None
    return content


def as_number(value: Any, states: Mapping[str, float]) -> float | None:
    """Return the number that a value stands for; None if it stands for none."""
    if isinstance(value, bool):
        return states.get("true" if value else "false")
    if isinstance(value, str):
        number = states.get(value.strip())
        return number_of(value) if number is None else number
    if isinstance(value, int | float):
        try:
            return float(value)
        except OverflowError:
            return None
    return None


def _leaves(content: Any, path: str, depth: int) -> Iterator[tuple[str, Any]]:
    if not isinstance(content, dict | list):
        yield path, content
        return
    if depth == DEEPEST:
        raise MalformedMessage(f"expected {DEEPEST} levels of objects at most, got more")
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        inner = f"{path}.{key}" if path else str(key)
        if len(inner) > LONGEST_NAME or not inner.isprintable():
            raise MalformedMessage(
                f"expected names of {LONGEST_NAME} printable characters at most, got {inner[:40]!r}"
            )
        yield from _leaves(value, inner, depth + 1)
