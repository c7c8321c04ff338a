"""Notes about rows that are judged by a model of others: their pace, and whose they are."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from submerge_files.console.units import in_words
from submerge_files.reader.parts import ONLY_MACHINE
from submerge_files.reader.selecting import some

PACES = 2.0
"""Factor between two paces of rows from which they are not the same."""


def other_pace(learnt_s: float, period_s: float) -> Iterator[str]:
    """Yield a note if rows come at another pace than those that were learnt.

    learnt_s, period_s : Time that a row stands for, in the history and here; 0 without times.
    """
    if not learnt_s or (period_s and 1 / PACES < period_s / learnt_s < PACES):
        return
    came = f"a row comes every {in_words(period_s)}" if period_s else "rows have no times"
    learnt = f"and the model has learnt one every {in_words(learnt_s)}"
    yield f"{came}, {learnt}: each row is judged as one of those, and false alarms come so often"


def unknown_machines(machines: Collection[str], known: Collection[str]) -> Iterator[str]:
    """Yield a note if machines that have a mean of their own were not learnt."""
    others = [name for name in machines if name not in known]
    if others == [ONLY_MACHINE] and known:
        yield (
            f"the model is of several machines ({some(known)}), and nothing says of which these"
            " rows are: they are measured from their own mean; name machines as in fit (--node-by)"
        )
    elif others and known:
        yield (
            f"{some(others)} is no machine that was learnt ({some(known)}), and is measured from"
            " the mean of its own rows: name machines as in fit (--node-by)"
        )
