"""What a model file holds beside the model: what merges, and which rows it is of."""

from __future__ import annotations

import math
from dataclasses import dataclass

from submerge.history.knowledge import Learnt
from submerge.pca.whole_scatter import WholeScatter
from submerge_files.console.printable import printable
from submerge_files.console.units import moment


@dataclass(frozen=True, slots=True)
class Contents:
    """What is in a file of form 3.

    merges : What merges; empty if the file holds the model alone.
    origin : Which fleet made it; empty for files.
    chunks, machines, rows : Of files; 0 for a fleet's model.
    first_s, last_s : When the first and the last of those rows were, Unix seconds; None without
        times.
    """

    merges: str
    origin: str
    chunks: int
    machines: int
    rows: int
    first_s: float | None
    last_s: float | None


def contents(learnt: Learnt) -> Contents:
    """Return what a file holds."""
    merges = ""
    if learnt.summary is not None:
        is_whole = isinstance(learnt.summary, WholeScatter)
        merges = "whole scatter" if is_whole else "directions"
    chunks = learnt.chunks
    timed = [chunk for chunk in chunks if not math.isnan(chunk.first)]
    return Contents(
        merges,
        learnt.origin,
        len(chunks),
        len({chunk.machine for chunk in chunks}),
        learnt.rows,
        min((chunk.first for chunk in timed), default=None),
        max((chunk.last for chunk in timed), default=None),
    )


def contents_text(found: Contents) -> str:
    """Return it as text, one line."""
    merges = f"a {found.merges}" if found.merges == "whole scatter" else found.merges
    said = [f"{merges} to merge further" if found.merges else "the model alone"]
    if found.origin:
        said.append(f"of the fleet {printable(found.origin)}")
    if found.chunks:
        span = ""
        if found.first_s is not None and found.last_s is not None:
            span = f", {moment(found.first_s)} to {moment(found.last_s)}"
        machines, chunks = _of(found.machines, "machine"), _of(found.chunks, "chunk")
        said.append(f"{found.rows:,} rows of {machines}, in {chunks}{span}")
    return "; ".join(said)


def _of(n: int, what: str) -> str:
    return f"one {what}" if n == 1 else f"{n:,} {what}s"
