"""Options of commands that read recorded readings with their times."""

from __future__ import annotations

import csv
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from submerge.condition import Condition, InState, UnknownChannel, states_in
from submerge.errors import UsageError
from submerge_client.config.plugins import plugin
from submerge_client.config.sections import nearest
from submerge_files.console.options import ZERO_IS_MISSING, flag_option, skip_option, together
from submerge_files.console.units import names_text

if TYPE_CHECKING:
    from submerge_files.reader import ReadingOptions
    from submerge_files.workers import Workers

SHOWN = 5  # channels that one message lists


def condition_of(
    text: str | None, names: Sequence[str], columns: Sequence[str] = ()
) -> Condition | None:
    """Return a condition; None without one."""
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
            "the files have that column, but only channels are compared with numbers: learn it with"
            " the others (fit --columns); a column of text is compared as in 'State == RUN'"
        )
    near = nearest(error.name, error.known)
    if near is not None:
        return f"did you mean {near!r}?"
    return f"channels are {names_text(error.known, SHOWN)}"


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
    columns: str | None = None,
    time: str | None = None,
    time_format: str | None = None,
    long: str | None = None,
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
    # A name with a comma is in quotes, as in a file.
    fields = next(csv.reader([text], skipinitialspace=True), [])
    return tuple(filter(None, map(str.strip, fields)))


def in_states(options: ReadingOptions, when: str | None) -> tuple[ReadingOptions, str | None]:
    """Return options that read the rows in the states of a condition, and the rest of that."""
    states, rest = ((), None) if when is None else states_in(when)
    return replace(options, states=states), rest


def as_fitted(
    when: str, states: Sequence[InState], columns: Collection[str]
) -> tuple[tuple[InState, ...], str]:
    """Return the states of the fit's condition that rows are chosen by, and a note on them."""
    absent = [each.column for each in states if each.column not in columns]
    if not absent:
        return (*states,), f"rows are judged where {when}, as the model was fitted"
    return (), (
        f"the model was fitted where {when}: all rows are judged by that but for column"
        f" {absent[0]}, which is not in the files"
    )


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


DASK = click.option(
    "--dask",
    metavar="ADDRESS",
    help="Let the workers of this Dask scheduler read FILEs, which may be paths that fsspec knows,"
    " such as s3://bucket/*.parquet.",
)


@contextmanager
def workers_at(address: str | None, **refused: object) -> Iterator[Workers | None]:
    """Connect to a scheduler and refuse `refused` options; None without an address."""
    if address is None:
        yield None
        return
    for name, value in refused.items():
        if value:
            raise UsageError(
                f"expected no --{name.replace('_', '-')} with --dask: it needs all rows in one"
                " place; leave one of the two out"
            )
    connected = plugin("submerge.clusters", "dask")
    if connected is None:
        raise UsageError("no installed package offers --dask: pip install 'submerge[dask]'")
    with connected(address) as workers:
        yield workers
