"""Decoder: what a message of a broker means, and the numbers in texts.

Messages come from any device of the network: a decoder checks everything, takes a message whole or
not at all, and keeps bounded state.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any, NamedTuple, Protocol

from submerge import PeerError

LARGEST_PAYLOAD = 1 << 16
"""Bytes; longer messages are refused."""

LATEST_S = 1e11
"""The year 5138; a time beyond it is in milliseconds."""

_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)


class MalformedMessage(PeerError):
    """A message that nothing can be read from."""


class ChannelReading(NamedTuple):
    """A number of a channel.

    channel : its index in the schema
    value : the number; None if the device says that it has none
    time : seconds since 1970; None for the time of arrival
    """

    channel: int
    value: float | None
    time: float | None


class Decoder(Protocol):
    """Reads messages."""

    @property
    def subscriptions(self) -> tuple[str, ...]:
        """The topic filters to subscribe to."""

    def readings(
        self, topic: str, payload: bytes | bytearray, *, retained: bool
    ) -> list[ChannelReading]:
        """Return the readings in a message.

        A message without any is counted by its reason; no message raises anything.

        retained : Whether the broker has kept it from earlier.
        """


class RebirthRequest(NamedTuple):
    """A message to publish, that asks for names."""

    topic: str
    payload: bytes


def check_size(payload: bytes | bytearray) -> None:
    """Refuse a payload that is too long."""
    if len(payload) > LARGEST_PAYLOAD:
        raise MalformedMessage(f"expected {LARGEST_PAYLOAD} bytes at most, got {len(payload)}")


def number_of(text: str) -> float | None:
    """Return the decimal number that a text is; None if it is none.

    Many devices write numbers as text.
    """
    text = text.strip()
    return float(text) if len(text) <= 64 and _NUMBER.fullmatch(text) else None


def seconds_of(value: Any) -> float | None:
    """Return a time in seconds since 1970; None if it is none.

    value : Seconds or milliseconds since 1970, as a number or a text; or ISO 8601, UTC without an
        offset.
    """
    if isinstance(value, str):
        number = number_of(value)
        if number is None:
            try:
                moment = datetime.fromisoformat(value.strip())
                return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
            except (ValueError, OverflowError):
                return None
        value = number
    if type(value) not in (int, float):
        return None
    if abs(value) > LATEST_S:
        value /= 1000
    return float(value) if abs(value) <= LATEST_S else None
