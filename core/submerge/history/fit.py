"""fit(): a history becomes a model with limits, in two passes over its rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from submerge.client.alarms.detector import DetectorState
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.alarms.limits import AlarmLimits
from submerge.client.monitor_state import MonitorState
from submerge.errors import NothingLearnt, UsageError
from submerge.history.chunk_keys import ChunkKeys
from submerge.history.first_pass import FirstPass
from submerge.history.folds import Folds, HeldOut, HistorySpan, folds_of, spans_of
from submerge.history.layout import LaidOut, Layout
from submerge.history.models import model_of, summaries_of
from submerge.history.recording import Recorded
from submerge.history.second_pass import JudgedHistory, NewestRows, Peaks, SecondPass
from submerge.history.settings import MOST_CHANNELS, FitSettings
from submerge.judge.prepare import none_left
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.history import Chunk
from submerge.protocol.messages import Counts, Model, ScoreSketches
from submerge.schema import Channel

FAR_ABOVE = 5.0
"""Times a usual block's highest score from which limits are said to be far above it: where rows
are alike, they are 2 to 4 times that."""

RAISING = 0.5
"""Share of the highest score of all cells from which a cell has raised the limits."""

Read = Callable[[], Iterable[Recorded]]
"""Reads a history from its start."""

Look = Callable[[], Iterable[Recorded]]
"""Reads its times from its start: rows of any width, with those channels alone that a condition
asks for."""

Advance = Callable[[int], None]
"""Takes numbers of rows that were read."""


@dataclass(frozen=True, slots=True, eq=False)
class Fitted:
    """A history that was learnt: a model to score with, the scatter of all, scaled, and its pass.

    `states` are of each machine, `newest` the last rows that were learnt, to try faults on, and
    `peaks` the largest scores of each cell.
    """

    model: Model
    scatter: WholeScatter
    folds: Folds
    first: FirstPass
    sketches: ScoreSketches
    states: Mapping[str, MonitorState]
    chunks: tuple[Chunk, ...] = ()
    newest: NewestRows = field(default_factory=NewestRows)
    peaks: Peaks = field(default_factory=dict)

    @property
    def explained(self) -> float:
        """Share of the variance along the directions that SPE and T2 are of."""
        shown = self.scatter.directions(self.folds.rank)
        return float(np.square(shown.sigma).sum()) / self.scatter.energy

    def raised(self, limits: AlarmLimits) -> tuple[float, tuple[HistorySpan, ...]]:
        """Return how many times a usual block's highest score limits are, and which rows did it.

        Without rows unless that is above `FAR_ABOVE`; 1 where nothing is known of blocks.
        """
        seen = {kind for each in self.peaks.values() for kind in each}
        times = {
            kind: limits.known[kind] / usual
            for kind, usual in limits.ordinary.items()
            if usual and kind in seen
        }
        kind, most = max(times.items(), key=lambda each: each[1], default=(None, 1.0))
        if kind is None or most <= FAR_ABOVE:
            return most, ()
        peaks = {cell: each[kind] for cell, each in self.peaks.items() if kind in each}
        least = RAISING * max(peaks.values())
        raising = {cell: 0.0 for cell, peak in peaks.items() if peak >= least}
        return most, spans_of(raising, self.folds.cells)


def fit(
    read: Read,
    channels: Sequence[Channel | str],
    settings: FitSettings | None = None,
    *,
    look: Look | None = None,
    advance: Advance = lambda _: None,
) -> Fitted:
    """Learn a history; `read` is called two to four times, for the same rows in the same order.

    `look` reads the times alone, where that is cheaper. Raises NothingLearnt if no row could be
    learnt, or nothing varies; UsageError if there are too many channels, or too few rows for them,
    or one alone varies, or spans that are to be excluded have no rows.
    """
    settings = settings or FitSettings()
    known = [Channel(each) if isinstance(each, str) else each for each in channels]
    names = [channel.name for channel in known]
    laid = _laid_out(look or read, len(names), settings)
    first, keys = FirstPass(names, settings, laid), ChunkKeys(names)
    for recorded in read():
        first.add(recorded)
        keys.add(recorded)
        advance(len(recorded.rows))
    first.end()
    if laid is None:
        raise NothingLearnt("expected rows that can be learnt, got none")
    if fills := first.known_once_more():
        first = FirstPass(names, settings, laid, fills)
        for recorded in read():
            first.add(recorded)
        first.end()
    folds = folds_after(first, known, settings)
    judge = HeldOut.of(folds, laid)
    # How long scores stay alike, and so how long a block is, a part of the rows says.
    block_s = _read_by(SecondPass(judge, settings, last_fold=0), read, advance).block_s
    judge = judge.of_blocks(block_s)
    judged = _read_by(SecondPass(judge, settings), read, advance)
    return fitted(first, folds, judged, settings, block_s, keys.end())


def folds_after(first: FirstPass, channels: Sequence[Channel], settings: FitSettings) -> Folds:
    """Return the folds of what a pass has learnt, whose cells it lets go; errors as of `fit`."""
    _check(first, settings)
    folds = folds_of(first.cells, channels, settings)
    _check_varying(folds)
    first.cells.clear()
    return folds


def _laid_out(look: Look, width: int, settings: FitSettings) -> LaidOut | None:
    """Settle by times how cells are laid out; None without rows."""
    layout = Layout(width, settings)
    if width <= MOST_CHANNELS:
        for recorded in look():
            layout.add(recorded)
    return layout.laid_out()


def _check(first: FirstPass, settings: FitSettings) -> None:
    """Refuse a history without rows to learn, or with fewer of them than channels."""
    learnt = round(sum(cell.weight for cell in first.cells.values()))
    if not learnt:
        none = none_left(first.rows, first.left_out, settings.when)
        raise NothingLearnt(f"expected rows that can be learnt, got {none}")
    width = len(first.names)
    if learnt < width:
        raise UsageError(
            f"expected more rows than channels, got {learnt:,} rows that can be learnt, of {width}"
            " channels: give more rows, or fewer channels; a table may lie on its side"
        )


def _check_varying(folds: Folds) -> None:
    """Refuse channels of which one alone varies: none says what another should be."""
    names = folds.schema.names
    varying = [name for name, each in zip(names, folds.moments.variance, strict=True) if each > 0]
    if len(varying) < 2 <= len(names):
        raise UsageError(
            f"expected two channels that vary, got {varying[0]} alone, and the other"
            f" {len(names) - 1} constant: give more columns, or rows in which they vary"
        )


def _read_by(second: SecondPass, read: Read, advance: Advance) -> JudgedHistory:
    """Let a pass take the rows, until it has all that it needs."""
    for recorded in read():
        second.add(recorded)
        advance(len(recorded.rows))
        if second.is_done:
            break
    return second.end()


def fitted(
    first: FirstPass,
    folds: Folds,
    judged: JudgedHistory,
    settings: FitSettings,
    block_s: float,
    chunks: tuple[Chunk, ...],
) -> Fitted:
    """Put together what both passes have come to; `block_s`: of the blocks that were counted."""
    scatter, names = folds.whole, first.machines
    model = model_of(
        scatter,
        folds,
        summaries_of(folds.rank, settings),
        version=1,
        nodes=len({cell.machine for cell in folds.cells}),
        scores=judged.sketches,
        counts=Counts(round(scatter.weight), first.rows - round(scatter.weight)),
        block_s=block_s,
        # Rows without times have NaN.
        at=max((cell.last for cell in folds.cells.values() if cell.last == cell.last), default=0.0),
    )
    # A single fold has learnt all rows, and a mean of less than a day says nothing of others.
    known = [each for each in judged.states.values() if each.own is None or each.own.settled]
    parts = [each.detector.highest for each in known if folds.count > 1]
    detector = DetectorState(highest=HighestSoFar.pooled(parts))
    states = {
        names[machine]: replace(state, detector=detector, desired=DesiredState(names[machine], 0))
        for machine, state in judged.states.items()
    }
    newest, peaks = judged.newest, judged.peaks
    return Fitted(model, scatter, folds, first, judged.sketches, states, chunks, newest, peaks)
