"""run_here(): a job on rows at hand, in one process: the calls of a network, in the same order."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Union

import numpy as np

from submerge._linalg import Array, unmasked
from submerge.errors import ShapeError, UsageError
from submerge.jobs.arrays import Arrays
from submerge.jobs.job import Settings
from submerge.jobs.kind import AnswerForm, JobAnswer, JobKind, PhaseDown
from submerge.jobs.kinds import KINDS, made
from submerge.jobs.masks import Masking
from submerge.jobs.points import JobPoints, draws, seed_of, split
from submerge.schema import Schema

ALL_POINTS = 2**31
"""More rows than a node has: in one process no row leaves it."""

NO_PARTICIPANT = "a job needs one participant or more, got none"

Parts = Mapping[str, Union[Array, "Parts"]]
"""Rows (n, width) by node; a mapping is an aggregator, with those below it."""


def run_here(
    kind: str,
    settings: Settings,
    parts: Parts,
    *,
    left_after: Mapping[str, int] | None = None,
    share_points: int = ALL_POINTS,
    rounds: int = 10_000,
    began: Callable[[str, int], object] = lambda *_: None,
) -> Arrays:
    """Return the answer of a job over parts, rows of one width; UsageError if there is none.

    left_after : In how many rounds of a job that is not exact a node counts that left.
    share_points : So many rows of a node may become known to others.
    began : Takes each phase and round, from 1.
    """
    _check_by_node(parts)
    points = _split(parts, settings)
    if not points:
        raise UsageError(NO_PARTICIPANT)
    widths = {part.rows.shape[1] for part in points.values()}
    if len(widths) != 1:
        raise UsageError(f"all rows have one width, got {sorted(widths)}")
    job = made(kind, settings, widths.pop(), "here", fewest=1)
    alone: Any = {"may_share": share_points, "masking": Masking()}
    shared = {name: part._replace(**alone) for name, part in points.items()}
    here = _Here(job, shared, left_after or {})
    state, down = job.first()
    for number in range(1, rounds + 1):
        began(down.phase, number)
        up = here.gather(parts, down)
        if up is None:
            raise UsageError(NO_PARTICIPANT)
        result = job.next(state, down, up)
        if isinstance(result, JobAnswer):
            return result.arrays
        state, down = result
        here.rounds += 1
    raise UsageError(f"the job has no answer after {rounds} rounds: allow more")


class _Here:
    def __init__(
        self, kind: JobKind, points: dict[str, JobPoints], left_after: Mapping[str, int]
    ) -> None:
        self._kind, self._points, self._left_after = kind, points, left_after
        self._memory: dict[str, Any] = {}
        self.rounds = 0

    def gather(self, parts: Parts, down: PhaseDown) -> Arrays | None:
        """Return what all parts contribute, merged along the tree; None if none does."""
        ups = []
        for name in sorted(parts):
            part = parts[name]
            if isinstance(part, Mapping):
                up = self.gather(part, down)
            elif self.rounds >= self._left_after.get(name, self.rounds + 1):
                up = None
            else:
                memory, points = self._memory.get(name), self._points[name]
                self._memory[name], up = self._kind.contribute(memory, down, points, name)
                left = points.may_share - self._kind.points_in(down, up)
                self._points[name] = points._replace(may_share=left)
            if up is not None:
                ups.append(up)
        return self._kind.merge(down, ups) if ups else None


def _split(parts: Parts, settings: Settings) -> dict[str, JobPoints]:
    """Return the points of each node, in those to learn from and those held out."""
    found: dict[str, JobPoints] = {}
    for name, part in parts.items():
        below = _split(part, settings) if isinstance(part, Mapping) else None
        new = {name: split_here(name, _rows_of(name, part), settings)} if below is None else below
        if repeated := found.keys() & new.keys():
            raise UsageError(f"each node is there once, got {', '.join(sorted(repeated))} twice")
        found |= new
    return found


def split_here(name: str, rows: Array, settings: Settings) -> JobPoints:
    """Return a node's points; which rows are held out follows from the job's seed."""
    return split(rows, settings, draws(seed_of(settings), name, "held out", len(rows)))


def _check_by_node(parts: object) -> None:
    if not isinstance(parts, Mapping):
        got = type(parts).__name__
        raise UsageError(f"parts are rows by node, as {{'pump-1': rows}}, got {got}")


def _rows_of(name: str, part: Any) -> Array:
    """Return the rows of a node, which may be anything that NumPy takes as a table of numbers."""
    try:
        return np.asarray(unmasked(part), dtype=np.float64)
    except (TypeError, ValueError) as error:
        got = type(part).__name__
        raise UsageError(f"rows of {name} are a table of numbers, got {got}: {error}") from error


# Jobs see rows as the schema scales them, and so are their answers: a center of k-means is a
# scaled row.


def scaled_arrays(kind: str) -> dict[str, AnswerForm]:
    """Return the arrays of a kind's answer that are scaled, and how; none of an unknown kind."""
    listed = KINDS[kind].answers if kind in KINDS else ()
    return {each.name: each.form for each in listed if each.form != "plain"}


def in_channel_units(kind: str, answer: Arrays, schema: Schema) -> dict[str, Array]:
    """Return an answer in which rows, and squares of deviations, are in the channels' units."""
    # A cost stays: it is a sum of squares over channels of different units, and has none.
    found = dict(answer)
    for name, form in scaled_arrays(kind).items():
        if name in answer:
            if answer[name].shape[-1:] != (schema.width,):
                raise ShapeError(name, expected=f"(..., {schema.width})", got=answer[name].shape)
            found[name] = _unscaled(answer[name], schema, squared=form == "squares")
    return found


def _unscaled(values: Array, schema: Schema, *, squared: bool) -> Array:
    if schema.scaling is None:
        return values
    offset, scale = np.array(schema.scaling.offset), np.array(schema.scaling.scale)
    return np.asarray(values * scale**2 if squared else values * scale + offset)
