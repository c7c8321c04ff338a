"""Scores of a node's newest rows, for a person: each over its limit, and the channels to blame."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from submerge_files.console.printable import name_text, printable
from submerge_files.console.units import moment

if TYPE_CHECKING:
    from rich.table import Table

    from submerge_client.asked.shapes import RecentReply


class ScoredRow(NamedTuple):
    """A row.

    at : Unix seconds
    scores : of each kind: its value, and its limit or None
    blame : channels and their shares
    """

    at: float
    scores: dict[str, tuple[float, float | None]]
    blame: dict[str, float]


def rows_of(reply: RecentReply) -> Iterator[ScoredRow]:
    """Yield the rows of a reply, oldest first."""
    for i, at in enumerate(reply.at):
        yield ScoredRow(
            at,
            {each.kind: (each.values[i], each.limit) for each in reply.kinds},
            {reply.channels[each.channel]: each.share for each in reply.blame[i]},
        )


def table_of(reply: RecentReply, *, most: int | None) -> Table:
    """Return the newest rows as a table, the newest at its end.

    most : rows; None for all
    """
    from rich import box
    from rich.table import Table
    from rich.text import Text

    limits = "provisional limits" if reply.provisional else "limits"
    table = Table(
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        padding=(0, 1, 0, 0),
        title=Text(printable(f"{reply.node}: scores over {limits}, model {reply.version}")),
        title_justify="left",
    )
    table.add_column("time", no_wrap=True)
    for each in reply.kinds:
        table.add_column(each.kind, justify="right", no_wrap=True)
    table.add_column("channels to blame", overflow="fold")
    rows = list(rows_of(reply))
    for row in rows if most is None else rows[-most:]:
        scores = [_over(*row.scores[each.kind]) for each in reply.kinds]
        cells = [moment(row.at), *scores, _blame(row)]
        table.add_row(*(Text(printable(each)) for each in cells))
    return table


def new_rows(before: RecentReply | None, after: RecentReply, *, as_json: bool) -> list[str]:
    """Return a line for each row that came since the look before; at first for all."""
    last = before.at[-1] if before is not None and before.at else float("-inf")
    return [_line(row, as_json=as_json) for row in rows_of(after) if row.at > last]


def _line(row: ScoredRow, *, as_json: bool) -> str:
    if as_json:
        scores = {
            kind: {"value": value, "limit": limit} for kind, (value, limit) in row.scores.items()
        }
        return json.dumps({"at": row.at, "scores": scores, "blame": row.blame})
    scores_text = ", ".join(f"{kind} {_over(*score)}" for kind, score in row.scores.items())
    return printable(f"{moment(row.at)}  {scores_text}  {_blame(row)}".rstrip())


def _over(value: float, limit: float | None) -> str:
    """Return a statistic over its limit; without one itself, in brackets."""
    return f"({value:.3g})" if not limit else f"{value / limit:.2f}"


def _blame(row: ScoredRow) -> str:
    return ", ".join(f"{name_text(name)} {100 * share:.0f} %" for name, share in row.blame.items())
