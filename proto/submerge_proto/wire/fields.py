"""Part: how a value is written into a message, and read back; form(): a message of such parts.

Each field is declared once: `PIN = form(pb.Pin, Pin, parent=PLAIN, incarnation=INCARNATION)`.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Generic, TypeVar

import numpy as np

from submerge import Array, PeerError

T = TypeVar("T")

MOST = 2**62  # larger numbers and times are not believed; ours can go on counting from there
WORST = sys.float_info.max  # largest score over a limit: a limit near zero would make it infinite


@dataclass(frozen=True, slots=True)
class Part(Generic[T]):
    """How a value is written, and how it is read and checked."""

    made: Callable[[T], Any]
    read: Callable[[Any], T]
    field: str = ""  # the field's name, where it is not that of the attribute
    optional: bool = False  # whether a field that is not set stands for None
    message: Any = None  # the class of the message, if it is one

    def at(self, field: str) -> Part[T]:
        """Return the same in a field of this name."""
        return replace(self, field=field)

    @property
    def maybe(self) -> Part[T | None]:
        return replace(self, optional=True)  # type: ignore[return-value]


def form(message: Any, value: Callable[..., T], /, **parts: Part[Any]) -> Part[T]:
    """Return how a value with these attributes is a message, each with its part."""
    known = [
        (name, each.field or name, each.made, each.read, each.optional)
        for name, each in parts.items()
    ]

    def made(held: T) -> Any:
        fields = {}
        for name, field, written, _, optional in known:
            each = getattr(held, name)
            if each is not None or not optional:
                fields[field] = written(each)
        return message(**fields)

    def read(sent: Any) -> T:
        has, held = sent.HasField, {}
        for name, field, _, reader, optional in known:
            held[name] = None if optional and not has(field) else reader(getattr(sent, field))
        return value(**held)

    return Part(made, read, message=message)


PLAIN: Part[Any] = Part(lambda value: value, lambda sent: sent)
"""As it is: whatever a field can hold is right."""


def several(part: Part[T], what: str = "", most: int | None = None) -> Part[tuple[T, ...]]:
    """Return how values are a repeated field, of at most `most`."""

    def read(sent: Any) -> tuple[T, ...]:
        if most is not None and len(sent) > most:
            raise PeerError(f"expected at most {most} {what}, got {len(sent)}", kind="oversize")
        return tuple(map(part.read, sent))

    return Part(lambda values: list(map(part.made, values)), read)


def or_empty(part: Part[Any]) -> Part[Any]:
    """Return how a value is bytes, of which there are none for None."""
    return Part(
        lambda value: b"" if value is None else part.made(value),
        lambda sent: part.read(sent) if sent else None,
    )


def choice(what: str, numbers: Mapping[T, int], unknown: T | None = None) -> Part[T]:
    """Return how a word is a number of an enum; `unknown` stands for one of a later version."""
    words = {number: word for word, number in numbers.items()}

    def read(sent: int) -> T:
        word = words.get(sent, unknown)
        if word is None:
            raise PeerError(f"expected a known {what}, got number {sent}")
        return word

    return Part(numbers.__getitem__, read)


def whole(what: str, most: int = MOST) -> Part[int]:
    """Return how a number that is at most `most` is a field."""
    return Part(PLAIN.made, lambda sent: number(what, sent, most))


def capped(what: str, most: int = MOST) -> Part[int]:
    """Return how a number is a field that is cut to `most`, which peers accept, when it is sent."""
    return Part(lambda value: min(value, most), lambda sent: number(what, sent, most))


def size(what: str, most: float = WORST) -> Part[float]:
    """Return how a number from 0 to `most` is a field; a sum is cut to that."""
    return Part(lambda value: min(value, most), lambda sent: within(what, sent, most))


def finite(what: str) -> Part[float]:
    """Return how a finite number is a field."""
    return Part(PLAIN.made, lambda sent: real(what, sent))


def floats(what: str) -> Part[Array]:
    def read(sent: bytes) -> Array:
        array = np.frombuffer(sent, "<f8")
        if not np.isfinite(array).all():
            raise PeerError(f"{what} must be finite", kind="not_finite")
        return array

    return Part(lambda array: np.ascontiguousarray(array, dtype="<f8").tobytes(), read)


def number(what: str, value: int, most: int = MOST) -> int:
    if value > most:
        raise PeerError(f"{what} must be at most {most}, got {value}", kind="range")
    return value


def real(what: str, value: float) -> float:
    if not math.isfinite(value):
        raise PeerError(f"{what} must be finite, got {value}", kind="not_finite")
    return value


def within(what: str, value: float, most: float = WORST) -> float:
    """Return a finite number from 0 to `most`."""
    if not 0 <= real(what, value) <= most:
        raise PeerError(f"{what} must be 0 to {most:g}, got {value:g}", kind="range")
    return value
