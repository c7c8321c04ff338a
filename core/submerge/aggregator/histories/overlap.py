"""check_times(): rows of one machine and one time count once, whatever file they are in.

The key of a chunk is that of its rows, so a file that has grown has another one. What both hold is
seen by machine and time alone.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Collection, Iterable
from itertools import accumulate

from submerge.aggregator.histories.table import Histories
from submerge.errors import UsageError
from submerge.protocol.history import Chunk, History


def check_times(table: Histories, history: History, covered: Collection[str]) -> None:
    """Refuse rows of a machine from a time of which rows of it are held.

    covered : names of histories whose place it takes

    Raises
    ------
    UsageError
        If there are some. Rows without times are not compared.
    """
    known, spans = history.keys, _Spans(history.chunks)
    for name, held in table.by_name.items():
        if name in covered or held.model.fingerprint != history.model.fingerprint:
            continue
        for chunk in held.chunks:
            if chunk.key not in known and spans.meet(chunk):
                raise UsageError(
                    f"history {name} holds rows of machine {chunk.machine} from the same time"
                    f" ({chunk.file or 'a fleet'}), which would count twice. If a file has grown,"
                    " forget that one first; if the rows are of another machine, fit with"
                    " --node-by, or say --anyway"
                )


class _Spans:
    """The spans of time that chunks have of each machine."""

    def __init__(self, chunks: Iterable[Chunk]) -> None:
        spans: dict[str, list[tuple[float, float]]] = {}
        for chunk in chunks:
            if chunk.first < chunk.last:  # NaN is no time
                spans.setdefault(chunk.machine, []).append((chunk.first, chunk.last))
        ordered = {machine: sorted(each) for machine, each in spans.items()}
        self._first = {machine: [span[0] for span in each] for machine, each in ordered.items()}
        self._latest = {
            machine: list(accumulate((span[1] for span in each), max))
            for machine, each in ordered.items()
        }

    def meet(self, chunk: Chunk) -> bool:
        """Return whether one of them has a time in common with a chunk of its machine."""
        before = bisect_left(self._first.get(chunk.machine, ()), chunk.last)
        return before > 0 and self._latest[chunk.machine][before - 1] > chunk.first
