"""lines_of(): a proposal as lines for a person."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from submerge_files.console.printable import name_text
from submerge_files.console.units import in_words
from submerge_operate.init.proposal import FoundChannel, OmittedField, Proposal

MOST_SHOWN = 60
"""Channels in a list; the file has all."""

MOST_LEFT_OUT = 12
"""Fields that are named for one reason."""


def lines_of(proposal: Proposal) -> Iterator[str]:
    """Yield what would be read, and what would be left out and why."""
    found = proposal.found
    yield f"{len(found)} {'channel' if len(found) == 1 else 'channels'}: {proposal.source}"
    rows = [("channel", "unit", "every", "range", ""), *map(_cells, found[:MOST_SHOWN])]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = [cell.ljust(width) for cell, width in zip(row, widths, strict=True) if width]
        yield ("  " + "  ".join(cells)).rstrip()
    if len(found) > MOST_SHOWN:
        yield f"  and {len(found) - MOST_SHOWN} more"
    if proposal.left_out:
        yield "left out:"
        yield from _reasons(proposal.left_out)
    yield from proposal.remarks


def _cells(channel: FoundChannel) -> tuple[str, str, str, str, str]:
    every = "" if channel.every_s is None else in_words(channel.every_s)
    lowest, highest = channel.lowest, channel.highest
    if lowest is None or highest is None:
        span = ""
    else:
        span = f"{lowest:g}" if lowest == highest else f"{lowest:g} to {highest:g}"
    return name_text(channel.name), name_text(channel.unit), every, span, channel.note


def _reasons(left_out: Iterable[OmittedField]) -> Iterator[str]:
    """Yield a line for each reason, with the names that it has."""
    names = dict[str, list[str]]()
    for each in left_out:
        names.setdefault(each.why, []).append(name_text(each.name))
    for why, named in names.items():
        more = f" and {len(named) - MOST_LEFT_OUT} more" if len(named) > MOST_LEFT_OUT else ""
        yield f"  {why}: {', '.join(named[:MOST_LEFT_OUT])}{more}"
