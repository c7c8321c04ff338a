"""Pieces: the rows of a machine that are judged in one go, and how their results are put together.

A monitor remembers, so rows are judged one after another. What it remembers fades, in some 20,000
readings or in weeks. So a machine with more than `judged_rows` rows is judged in pieces of so many,
each by a monitor of its own. Rows before a piece lead into it: they are judged and do not count.
Pieces have nothing to do with each other. Where they are follows from the numbers of the rows
alone; a machine with fewer rows is one piece.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from submerge.client.alarms.detector import DetectorState
from submerge.client.alarms.highest import HighestSoFar
from submerge.history.machine_pass import JudgedMachine
from submerge.protocol.messages import ScoreSketches
from submerge.stats.block_maxima import BlockMaxima, pooled
from submerge.stats.quantile_sketch import QuantileSketch, merged

LEAD = 16
"""A lead is a piece over this."""


class RowPiece(NamedTuple):
    """Rows of a machine that are judged in one go, by their numbers from 0.

    number : of the piece, from 0
    lead : where its lead begins
    begin, end : the rows that count
    """

    number: int
    lead: int
    begin: int
    end: int


def pieces_over(first: int, last: int, judged_rows: int) -> Iterator[RowPiece]:
    """Yield the pieces that have some of the rows `first` to `last` - 1, or lead into them."""
    lead = judged_rows // LEAD
    for number in range(first // judged_rows, (last - 1 + lead) // judged_rows + 1):
        begin = number * judged_rows
        yield RowPiece(number, max(0, begin - lead), begin, begin + judged_rows)


def joined(pieces: Mapping[int, JudgedMachine]) -> JudgedMachine:
    """Return what came of a machine's pieces; what is known of it is what the last one knows."""
    ordered = [pieces[number] for number in sorted(pieces)]
    last = ordered[-1]
    if len(ordered) == 1:
        return last
    state, runs = last.state, last.state.run_lengths
    for each in reversed(ordered[:-1]):
        if runs is not None and each.state.run_lengths is not None:
            runs = runs.with_range_of(each.state.run_lengths)
    sketches = [each.sketches for each in ordered]
    maxima = tuple(each.maxima for each in sketches if each.maxima is not None)
    together = ScoreSketches(
        merged(*(each.spe for each in sketches)),
        merged(*(each.t2 for each in sketches)),
        None,
        # Pieces are one after another.
        in_a_row(maxima, last.lengths),
        merged(*known(each.distance for each in sketches)),
    )
    highest = HighestSoFar.pooled(each.state.detector.highest for each in ordered)
    state = replace(state, run_lengths=runs, detector=DetectorState(highest=highest))
    return JudgedMachine(together, last.lengths, state, last.newest)


def in_a_row(parts: Sequence[BlockMaxima], lengths: tuple[int, ...]) -> BlockMaxima | None:
    """Return the maxima of parts of one machine that are one after another."""
    if not parts:
        return None
    return replace(pooled(*parts), longest=sum(each.longest for each in parts), lengths=lengths)


def known(sketches: Iterator[QuantileSketch | None]) -> Iterator[QuantileSketch]:
    """Yield the sketches that there are."""
    return (sketch for sketch in sketches if sketch is not None)
