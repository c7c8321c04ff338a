"""Protobuf messages by the numbers of their fields: what stays when all names change.

A place is a path of field numbers, as on the wire: "3.8.1[0].2" is field 2 of the first message
in field 1 of field 8 of field 3.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

SIZES = 1e-4, 1e9
"""Numbers of ordinary size: bytes that are nothing but such are shown as numbers."""


def listed(message: Any, place: str = "") -> dict[str, Any]:
    """Return the value at each place that is set; an empty message is {}."""
    found: dict[str, Any] = {}
    for field, value in message.ListFields():
        here = f"{place}{field.number}"
        # A single value is no sequence; text and bytes are those of single fields only.
        several = isinstance(value, str | bytes) is False and hasattr(value, "__len__")
        places = [f"{here}[{i}]" for i in range(len(value))] if several else [here]
        for at, each in zip(places, value if several else [value], strict=True):
            if field.message_type is None:
                found[at] = plain(each)
            else:
                found |= listed(each, f"{at}.") or {at: {}}
    return found


def plain(value: Any) -> Any:
    """Return a value as JSON can say it: each in one way only, and another value otherwise."""
    if isinstance(value, bytes):
        return _bytes(value)
    if isinstance(value, float):
        return _number(value)
    return value


def _number(value: float) -> float | str:
    return value if math.isfinite(value) else repr(value)


def _bytes(data: bytes) -> dict[str, Any]:
    """Return bytes as text, or numbers, where that is what they look like; else in hex."""
    if data.isascii() and data.decode().isprintable():
        return {"text": data.decode()}
    try:
        text = data.decode()
    except UnicodeDecodeError:
        text = ""
    if text.isprintable() and text:
        return {"text": text}
    for form in ("<f8", "<f4"):
        if len(data) % np.dtype(form).itemsize == 0:
            with np.errstate(invalid="ignore"):  # whole numbers may look like NaN of a kind
                values = np.frombuffer(data, form).astype(np.float64)
            size = np.abs(values)
            ordinary = (size == 0) | np.isnan(size) | ((size > SIZES[0]) & (size < SIZES[1]))
            # Not minus zero, nor another NaN than the usual: they would be shown alike.
            shown_alike = np.signbit(values[size == 0]).any() or not values.any()
            if ordinary.all() and not shown_alike and values.astype(form).tobytes() == data:
                return {form[1:]: [_number(each) for each in values.tolist()]}
    return {"hex": data.hex()}


def filled(message: Any) -> Iterator[tuple[Any, int, Any]]:
    """Yield (descriptor, field number, value) of all that is set, messages inside included."""
    for field, value in message.ListFields():
        several = isinstance(value, str | bytes) is False and hasattr(value, "__len__")
        for each in value if several else [value]:
            yield message.DESCRIPTOR, field.number, each
            if field.message_type is not None:
                yield from filled(each)


def reached(descriptor: Any, seen: dict[str, Any] | None = None) -> dict[str, Any]:
    """Return a message's descriptor and those of all messages inside, by full name."""
    seen = {} if seen is None else seen
    if descriptor.full_name not in seen:
        seen[descriptor.full_name] = descriptor
        for field in descriptor.fields:
            if field.message_type is not None:
                reached(field.message_type, seen)
    return seen


def places(descriptor: Any, within: Any, place: str = "") -> Iterator[str]:
    """Yield every place of a message, without indices; into messages of one file only.

    within : the file's descriptor
    """
    for field in descriptor.fields:
        here = f"{place}{field.number}"
        yield here
        if field.message_type is not None and field.message_type.file is within:
            yield from places(field.message_type, within, f"{here}.")


def set_places(message: Any, within: Any, place: str = "") -> Iterator[str]:
    """Yield the places that are set, as `places`."""
    for field, value in message.ListFields():
        here = f"{place}{field.number}"
        yield here
        if field.message_type is not None and field.message_type.file is within:
            several = hasattr(value, "__len__")
            for each in value if several else [value]:
                yield from set_places(each, within, f"{here}.")
