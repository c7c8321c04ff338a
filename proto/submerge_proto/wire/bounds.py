"""check(): bytes that would take far more memory than they weigh are refused before that.

Protobuf makes something of every part that it meets: two bytes that open an empty message stand
for forty in memory, or for two hundred. So we walk over the bytes first, along the lengths that
they claim, and make nothing. `check_text` does so for what comes as JSON.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from submerge import PeerError

MOST_PARTS = 4096
"""Fields of a message and of those within, and bytes of numbers that come in one run. An honest
report has fifty, of 64 alarms 1400, a join with 256 past fences 800, a model with limits of 64
shares 2100."""

MOST_WORDS = 1 << 18
"""Brackets and commas in a schema's text: of 50,000 channels, each with its scaling."""

Plan = dict[int, "Plan | None"]
"""What to look into, by tag: a message, with its own plan; None for numbers in a run."""


def check(form: Any, data: bytes) -> None:
    """Refuse bytes that are no message, or one of too many parts.

    form : the message that they should be; fields that it has not are counted and passed over

    Raises
    ------
    PeerError
        "oversize" or "malformed". What passes may be malformed still: protobuf will say.
    """
    if len(data) > 2 * MOST_PARTS:  # or there is no room for more, and nothing to be gained
        _walked(data, 0, len(data), _plan(form.DESCRIPTOR), MOST_PARTS)


def check_text(text: bytes) -> None:
    """Refuse a schema's text that JSON would make too much of."""
    words = sum(map(text.count, (b"[", b"{", b",")))
    if words > MOST_WORDS:
        raise PeerError(
            f"a schema has at most {MOST_WORDS} brackets and commas, got {words}", kind="oversize"
        )


def _walked(data: bytes, at: int, end: int, plan: Plan, left: int) -> int:
    """Walk from field to field; return how many more parts there may be."""
    while at < end:
        tag, at = _number(data, at, end)
        left -= 1
        wire = tag & 7
        if wire == 2:
            length, start = _number(data, at, end)
            at = start + length
            if at > end:
                raise _cut_short()
            if tag in plan:
                inner = plan[tag]
                left = left - length if inner is None else _walked(data, start, at, inner, left)
        elif wire == 0:
            _, at = _number(data, at, end)
        elif wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        else:
            raise PeerError(f"expected a field of a kind that is in use, got tag {tag}")
        if left < 0:
            raise PeerError(f"expected at most {MOST_PARTS} parts, got more", kind="oversize")
    if at > end:
        raise _cut_short()
    return left


def _number(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return a number in seven bits a byte, the lowest first, and where it ends."""
    number = 0
    for at in range(start, min(end, start + 10)):
        byte = data[at]
        number |= (byte & 0x7F) << 7 * (at - start)
        if byte < 0x80:
            return number, at + 1
    raise _cut_short()


def _cut_short() -> PeerError:
    return PeerError("expected a whole message, got one that is cut short or damaged")


@cache
def _plan(descriptor: Any) -> Plan:
    """Return what to look into of a message."""
    plan: Plan = {}
    for field in descriptor.fields:
        tag = field.number << 3 | 2
        if field.message_type is not None:
            plan[tag] = _plan(field.message_type)
        elif field.cpp_type != field.CPPTYPE_STRING:  # bytes, too
            plan[tag] = None
    return plan
