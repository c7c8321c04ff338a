"""check(): refuses bytes that would take far more memory than their length, before they are parsed.

Protobuf makes an object of every part: two bytes that open an empty message take forty or two
hundred in memory. So we first walk over the bytes, along the lengths in them, and make nothing.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from submerge import PeerError

MOST_PARTS = 4096
"""Most fields of a message and of those within, and bytes of packed numbers. An honest report has
fifty, with 64 alarms 1400, a join with 256 past fences 800, a model with limits of 64 shares
2100."""

MOST_WORDS = 1 << 18
"""Most brackets and commas in a schema's text: 50,000 channels, each with its scaling."""

Plan = dict[int, "Plan | None"]
"""Fields to count inside, by tag: a message has its own plan, packed numbers have None."""


def check(form: Any, data: bytes, most: int = MOST_PARTS) -> None:
    """Refuse bytes that are no message of this form, or of too many parts; protobuf reads on."""
    if len(data) > 2 * most:  # fewer bytes have no room for more parts
        _walk(data, 0, len(data), _plan(form.DESCRIPTOR), most)


def check_text(text: bytes) -> None:
    """Refuse a schema's text that would become too many objects."""
    words = sum(map(text.count, (b"[", b"{", b",")))
    if words > MOST_WORDS:
        raise PeerError(
            f"a schema has at most {MOST_WORDS} brackets and commas, got {words}", kind="oversize"
        )


def _walk(data: bytes, at: int, end: int, plan: Plan, left: int) -> int:
    """Walk from field to field; return how many more parts there may be."""
    while at < end:
        # Most numbers are one byte: a call for each would take most of the time.
        tag, at = (data[at], at + 1) if data[at] < 0x80 else _number(data, at, end)
        left -= 1
        wire = tag & 7
        if wire == 2:
            short = at < end and data[at] < 0x80
            length, start = (data[at], at + 1) if short else _number(data, at, end)
            at = start + length
            if at > end:
                raise _cut_short()
            if tag in plan:
                inner = plan[tag]
                left = left - length if inner is None else _walk(data, start, at, inner, left)
        elif wire == 0:
            _, at = _number(data, at, end)
        elif wire == 1:
            at += 8
        elif wire == 5:
            at += 4
        else:
            raise PeerError(f"expected a field of a known wire type, got tag {tag}")
        if left < 0:
            raise PeerError("expected a message of fewer parts, got too many", kind="oversize")
    if at > end:
        raise _cut_short()
    return left


def _number(data: bytes, start: int, end: int) -> tuple[int, int]:
    """Return a varint (seven bits a byte, the lowest first), and where it ends."""
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
    plan: Plan = {}
    for field in descriptor.fields:
        tag = field.number << 3 | 2
        if field.message_type is not None:
            plan[tag] = _plan(field.message_type)
        elif field.cpp_type != field.CPPTYPE_STRING:  # bytes, too
            plan[tag] = None
    return plan
