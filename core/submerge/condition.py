"""Condition: an operating state as text, such as "rpm > 50 and load >= 0.2".

There is no `or`, no arithmetic and no memory: compute a channel for these. In files a column of
text, which is no channel, may be compared with a word (`InState`).
"""

from __future__ import annotations

import json
import math
import operator
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from submerge._linalg import Array
from submerge.errors import ShapeError, UsageError

COMPARED: dict[str, Callable[[Any, Any], Any]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}

MEANT = {"=": "==", "=<": "<=", "=>": ">=", "<>": "!="}

JOINED = "and"

SIGNS = "[<>=!]+"
BARE = r'[^\s<>=!"]+'  # matches a name that needs no quotes

WORD = re.compile(rf'"(?:[^"\\]|\\.)*"|".*|{SIGNS}|{BARE}', re.DOTALL)
"""Every character but blanks belongs to one."""

NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

Mask = NDArray[np.bool_]


class UnknownChannel(UsageError):
    """A condition names a channel that does not exist; `known` are those that do."""

    def __init__(self, name: str, known: Sequence[str]) -> None:
        self.name, self.known = name, tuple(known)
        super().__init__(f"expected a channel's name, got {_quoted(name)}")


@dataclass(frozen=True, slots=True)
class Relation:
    """One channel against one number."""

    channel: str  # its name
    column: int  # its position in a row
    sign: str  # one of `COMPARED`
    number: float

    def holds(self, rows: Array) -> Mask:
        """Return for which rows (n, channels) the comparison holds, (n,)."""
        readings = rows[:, self.column]
        # NaN differs from every number: without the check, "!=" would hold for a gap.
        fulfilled: Mask = COMPARED[self.sign](readings, self.number) & ~np.isnan(readings)
        return fulfilled

    def __str__(self) -> str:
        number = repr(self.number).removesuffix(".0")
        return f"{_named(self.channel)} {self.sign} {number}"


@dataclass(frozen=True, slots=True)
class InState:
    """A column of text against one word, as in "State == RUN"."""

    column: str
    sign: str
    word: str

    def holds(self, texts: Sequence[str]) -> Mask:
        """Return for which of n texts the comparison holds, (n,); for no empty one."""
        wanted = self.sign == "=="
        return np.array([text != "" and (text == self.word) == wanted for text in texts], bool)

    def __str__(self) -> str:
        return f"{_named(self.column)} {self.sign} {_named(self.word)}"


def states_in(text: str) -> tuple[tuple[InState, ...], str | None]:
    """Return the comparisons of a condition with words, and the rest of it, None for no rest."""
    words = WORD.findall(text)
    parts = [words[at : at + 3] for at in range(0, len(words), 4)]
    states, others = [], []
    for part in parts:
        word = part[2] if len(part) == 3 and part[1] in ("==", "!=") else ""
        if word and not NUMBER.fullmatch(word) and not re.fullmatch(SIGNS, word):
            states.append(InState(_channel(part[0]), part[1], _channel(word)))
        else:
            others.append(" ".join(part))
    if not states or any(joint != JOINED for joint in words[3::4]):
        return (), text
    return tuple(states), f" {JOINED} ".join(others) or None


@dataclass(frozen=True, slots=True)
class Condition:
    """One or more comparisons, all of which must hold for a row to count; a gap fulfills none."""

    comparisons: tuple[Relation, ...]

    def __post_init__(self) -> None:
        if not self.comparisons:
            raise UsageError('expected a condition such as "rpm > 50", got none')

    @classmethod
    def parse(cls, text: str, names: Sequence[str]) -> Condition:
        """Return the condition that a text describes.

        Parameters
        ----------
        text : str
            `CHANNEL SIGN NUMBER`, and more of them after `and`. A name with blanks or signs in
            it stands in double quotes, escaped as in JSON.
        names : sequence of str
            The channels of a row, in order. With lags a plain name means the newest reading.

        Raises UsageError for the first mistake; `UnknownChannel` for an unknown name.
        """
        words = WORD.findall(text)
        comparisons = [_comparison(words[:3], names)] if words else []
        for at in range(3, len(words), 4):
            if words[at] != JOINED:
                raise UsageError(
                    f'expected "{JOINED}" or the end after {comparisons[-1]},'
                    f" got {_quoted(words[at])}"
                )
            comparisons.append(_comparison(words[at + 1 : at + 4], names))
        return cls(tuple(comparisons))

    def holds(self, rows: Array) -> Mask:
        """Return for which rows (n, channels or more), in units, the condition holds, (n,)."""
        least = 1 + max(comparison.column for comparison in self.comparisons)
        if rows.ndim != 2 or rows.shape[1] < least:
            raise ShapeError("rows", expected=f"(n, {least} or more)", got=rows.shape)
        fulfilled: Mask = np.logical_and.reduce([one.holds(rows) for one in self.comparisons])
        return fulfilled

    def __str__(self) -> str:
        return f" {JOINED} ".join(map(str, self.comparisons))


def _comparison(words: Sequence[str], names: Sequence[str]) -> Relation:
    """Read up to three words."""
    name, sign, number = (*words, "", "", "")[:3]
    channel = _channel(name)
    if sign not in COMPARED:
        raise UsageError(_unsigned(name, sign))
    if channel not in names:
        raise UnknownChannel(channel, names)
    if not NUMBER.fullmatch(number) or not math.isfinite(float(number)):
        raise UsageError(f"expected a number after {name} {sign}, got {_got(number)}")
    # + 0.0: a negative zero is the same number.
    return Relation(channel, names.index(channel), sign, float(number) + 0.0)


def _channel(word: str) -> str:
    if not word or re.fullmatch(SIGNS, word):
        raise UsageError(f"expected a channel's name, got {_got(word)}")
    if not word.startswith('"'):
        return word
    try:
        # Not strict: a name may have a tab in it.
        return str(json.loads(word, strict=False))
    except ValueError:
        raise UsageError(f"expected a name between double quotes, got {word}") from None


def _unsigned(name: str, got: str) -> str:
    message = f"expected one of {' '.join(COMPARED)} after {name}, got {_got(got)}"
    if got in MEANT:
        return f"{message}; did you mean {MEANT[got]}?"
    if got and not re.fullmatch(SIGNS, got):
        return f"{message}; a name with blanks in it stands in double quotes"
    return message


def _named(name: str) -> str:
    """Write a name so that it reads back as the same."""
    bare = re.fullmatch(BARE, name) and name != JOINED and not NUMBER.fullmatch(name)
    return name if bare else _quoted(name)


def _got(word: str) -> str:
    return _quoted(word) if word else "nothing"


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
