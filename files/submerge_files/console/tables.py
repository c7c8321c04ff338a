"""Tables for a terminal, as lists of columns; lines of names and values; and notes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import click

from submerge_files.console.units import printable

if TYPE_CHECKING:
    from rich.table import Table

Row = TypeVar("Row")


@dataclass(frozen=True, slots=True)
class Column(Generic[Row]):
    """One column: what a cell says of a row, escaped, and never broken unless it `folds`."""

    heading: str
    cell: Callable[[Row], str]
    shown: bool = True
    right: bool = False
    folds: bool = False
    lines: bool = False  # a cell has several, and has to be printable


def table(rows: Iterable[Row], columns: Iterable[Column[Row]], title: str = "") -> Table:
    """Return a table of the columns that are shown."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1, 0, 0))
    if title:
        made.title, made.title_justify = Text(printable(title)), "left"
    shown = [column for column in columns if column.shown]
    for each in shown:
        made.add_column(
            each.heading,
            justify="right" if each.right else "left",
            no_wrap=not each.folds,
            overflow="fold" if each.folds else "ellipsis",
        )
    for row in rows:
        cells = [(column.cell(row), column.lines) for column in shown]
        made.add_row(*(Text(cell if lines else printable(cell)) for cell, lines in cells))
    return made


def say_lines(lines: Iterable[tuple[str, object]], *, err: bool = False) -> None:
    for name, value in lines:
        click.echo(f"{name:<10} {value}", err=err)


def say_notes(notes: Iterable[str]) -> None:
    for note in notes:
        click.echo(printable(f"note: {note}"), err=True)
