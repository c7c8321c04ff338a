"""Options of commands that read recorded readings with their times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from submerge.errors import UsageError
from submerge_files.console.options import ZERO_IS_MISSING, flag_option, skip_option, together

if TYPE_CHECKING:
    from submerge_files.reader import ReadingOptions

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
)
"""`--time`, `--time-format`, `--long`."""

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
    **others: Any,
) -> ReadingOptions:
    """Return the options of `READING`, or some of them, as their reader takes them."""
    from submerge_files.reader import ReadingOptions

    named = () if columns is None else tuple(filter(None, map(str.strip, columns.split(","))))
    return ReadingOptions(
        columns=named,
        time=time or "",
        time_format=time_format or "",
        long=long_columns(long),
        node_by=node_by or "",
        **others,
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
