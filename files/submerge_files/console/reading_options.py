"""Options of commands that read recorded readings with their times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from submerge.condition import Condition, UnknownChannel, states_in
from submerge.errors import UsageError
from submerge_client.config.sections import nearest
from submerge_files.console.options import ZERO_IS_MISSING, flag_option, skip_option, together

if TYPE_CHECKING:
    from submerge_files.reader import ReadingOptions

SHOWN = 5
"""Channels that one message lists."""


def condition_of(
    text: str | None, names: Sequence[str], columns: Sequence[str] = ()
) -> Condition | None:
    """Return a condition; None without one."""
    if text is None:
        return None
    if states := states_in(text)[0]:
        raise UsageError(
            f"condition {text!r}: expected channels and numbers, got {states[0]}: a column of text"
            " is compared by fit and detect alone"
        )
    try:
        return Condition.parse(text, names)
    except UnknownChannel as error:
        raise UsageError(f"condition {text!r}: {error}; {_meant(error, columns)}") from error
    except UsageError as error:
        raise UsageError(f"condition {text!r}: {error}") from error


def _meant(error: UnknownChannel, columns: Sequence[str]) -> str:
    if error.name in columns:
        return (
            "the files have that column, but only channels are compared with numbers: learn it with"
            " the others (fit --columns); a column of text is compared as in 'State == RUN'"
        )
    near = nearest(error.name, error.known)
    if near is not None:
        return f"did you mean {near!r}?"
    more = len(error.known) - SHOWN
    known = ", ".join(error.known[:SHOWN]) + (f" and {more} more" if more > 0 else "")
    return f"channels are {known}"


COLUMNS = click.option(
    "--columns",
    metavar="LIST",
    help='Channels, by name: "temp,flow", "p*", "a..f".  [default: all columns of numbers]',
)

TIMES = together(
    click.option(
        "--time", metavar="COLUMN", help='The column of times; "none" if none is.  [default: found]'
    ),
    click.option(
        "--time-format",
        metavar="FORMAT",
        help="How times are written: '%d/%m/%Y %H:%M', s, ms, us, ns or excel.  [default: found]",
    ),
    click.option(
        "--long", metavar="CHANNEL,VALUE", help="Read long tables: a row is one value of a channel."
    ),
    click.option(
        "--na", metavar="LIST", help="Values that are gaps, too: '-9999,Bad'; numbers or words."
    ),
)
"""`--time`, `--time-format`, `--long`, `--na`."""

READING = together(
    COLUMNS,
    skip_option("Leave a column out, by name or pattern."),
    TIMES,
    click.option(
        "--node-by",
        metavar="file|COLUMN",
        help="FILEs are of several machines: one for each, or named in COLUMN.",
    ),
    flag_option("--sort", "Sort rows that are not in the order of time."),
    ZERO_IS_MISSING,
)
"""`--columns`, `--skip`, those of `TIMES`, `--node-by`, `--sort`, `--zero-is-missing`."""


def reading_options(
    columns: str | None,
    time: str | None,
    time_format: str | None,
    long: str | None,
    node_by: str | None = None,
    na: str | None = None,
    **others: Any,
) -> ReadingOptions:
    """Return the options of `READING`, or some of them, as their reader takes them."""
    from submerge_files.reader import ReadingOptions

    return ReadingOptions(
        columns=() if columns is None else _listed(columns),
        time=time or "",
        time_format=time_format or "",
        long=long_columns(long),
        node_by=node_by or "",
        missing=() if na is None else _listed(na),
        **others,
    )


def _listed(text: str) -> tuple[str, ...]:
    return tuple(filter(None, map(str.strip, text.split(","))))


def in_states(options: ReadingOptions, when: str | None) -> tuple[ReadingOptions, str | None]:
    """Return options that read the rows in the states of a condition, and the rest of that."""
    states, rest = ((), None) if when is None else states_in(when)
    return replace(options, states=states), rest


def long_columns(text: str | None) -> tuple[str, str] | None:
    """Return the two columns of `--long`."""
    if text is None:
        return None
    channel, comma, value = text.partition(",")
    if not (comma and channel.strip() and value.strip()):
        raise UsageError(
            f"--long is two columns such as channel,value, got {text!r}:"
            " name that of the channels first"
        )
    return channel.strip(), value.strip()
