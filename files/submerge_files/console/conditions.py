"""The state that rows have to be in (`--when`), and what to do about a name that is no channel."""

from __future__ import annotations

from collections.abc import Sequence

from submerge.condition import Condition, UnknownChannel
from submerge.errors import UsageError
from submerge_client.config.hints import nearest

SHOWN = 5
"""Channels that one message lists."""


def condition_of(
    text: str | None, names: Sequence[str], columns: Sequence[str] = ()
) -> Condition | None:
    """Return a condition; None without one.

    names : Channels.
    columns : Of the files: some may be no channels.

    Raises
    ------
    UsageError
        If it is none. One line, with the channel that is nearest to an unknown name.
    """
    if text is None:
        return None
    try:
        return Condition.parse(text, names)
    except UnknownChannel as error:
        raise UsageError(f"condition {text!r}: {error}; {_meant(error, columns)}") from error
    except UsageError as error:
        raise UsageError(f"condition {text!r}: {error}") from error


def _meant(error: UnknownChannel, columns: Sequence[str]) -> str:
    if error.name in columns:
        return (
            "the files have that column, but only channels are compared: learn it with the others"
            " (fit --columns)"
        )
    near = nearest(error.name, error.known)
    if near is not None:
        return f"did you mean {near!r}?"
    more = len(error.known) - SHOWN
    known = ", ".join(error.known[:SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"channels are {known}"
