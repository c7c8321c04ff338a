"""Long tables: a row for each value, with the channel's name beside it, become a row a time.

1. Values of the same time that follow one another are one row; a channel without one is a gap.
2. The same channel twice at one time is refused.
3. Channels are in the order of their names: no file says which is the first.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from submerge import Array
from submerge_client.datasets.source import refusal
from submerge_files.reader.formats.tables import TableFile
from submerge_files.reader.options import ReadingOptions
from submerge_files.reader.reading import FileReading, Names, Span, joined
from submerge_files.reader.selecting import matching

MOST_CHANNELS = 10_000
"""More names than this are no channels: the columns are the wrong way round."""


def channels_in(readings: Sequence[FileReading], options: ReadingOptions) -> tuple[str, ...]:
    """Read the names of channels in all files, and return those that are wanted.

    Raises
    ------
    UsageError
        If there are more than `MOST_CHANNELS`, or a wanted one is not there.
    """
    found: set[str] = set()
    for reading in readings:
        for span in reading.without_rows().spans():
            found.update(() if span.keys is None else span.keys)
            if len(found) > MOST_CHANNELS:
                raise refusal(
                    reading.file.path,
                    expected=f"at most {MOST_CHANNELS} names of channels",
                    got="more",
                    hint="name the channel's column first: --long CHANNEL,VALUE",
                )
    found.discard("")
    names, path = tuple(sorted(found)), readings[0].file.path
    skipped = {*matching(path, names, options.skip, "--skip")}
    chosen = matching(path, names, options.columns or names, "--columns")
    return tuple(names[i] for i in chosen if i not in skipped)


def widened(
    spans: Iterable[tuple[Span, TableFile]], names: Sequence[str]
) -> Iterator[tuple[Span, TableFile]]:
    """Yield spans of a row a time and a column a channel; a time may go on in the next span."""
    places = {name: i for i, name in enumerate(names)}
    held: list[tuple[Span, TableFile]] = []
    for span, file in spans:
        part = span.only(np.flatnonzero([key in places for key in _keys(span)]))
        if not len(part.rows):
            continue
        if held and _times(held[-1][0])[-1] != _times(part)[0]:
            yield _wide(held, places), held[0][1]
            held = []
        changes = np.flatnonzero(np.diff(_times(part))) + 1
        if not len(changes):
            held.append((part, file))
            continue
        # What is held has the first time of this span; the last time is held next.
        begin = int(changes[0]) if held else 0
        if held:
            held.append((part.only(slice(0, begin)), file))
            yield _wide(held, places), held[0][1]
        end = int(changes[-1])
        if begin < end:
            yield _wide([(part.only(slice(begin, end)), file)], places), file
        held = [(part.only(slice(end, None)), file)]
    if held:
        yield _wide(held, places), held[0][1]


def _wide(held: Sequence[tuple[Span, TableFile]], places: dict[str, int]) -> Span:
    span = joined([part for part, _ in held])
    times = _times(span)
    fresh = np.concatenate([[True], np.diff(times) != 0])
    starts, row = np.flatnonzero(fresh), np.cumsum(fresh) - 1
    column = np.array([places[key] for key in _keys(span)])
    cells, first = np.unique(row * len(places) + column, return_index=True)
    if len(cells) < len(row):
        again = int(np.setdiff1d(np.arange(len(row)), first)[0])
        file = held[-1][1]
        raise refusal(
            f"{file.path}, {file.unit} {span.places[again]}",
            expected="one value of a channel at a time",
            got=f"{_keys(span)[again]!r} again",
            hint="leave one out, or name the machine's column (--node-by)",
        )
    rows = np.full((len(starts), len(places)), np.nan)
    rows[row, column] = span.rows[:, 0]
    return Span(rows, times[starts], None, None, span.places[starts], span.numbers[starts])


def _times(span: Span) -> Array:
    return np.asarray(span.times)


def _keys(span: Span) -> Names:
    return np.asarray(span.keys, dtype=object)
