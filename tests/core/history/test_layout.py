"""How a history is cut into cells follows from its times, and not from who looked at them."""

from __future__ import annotations

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge.history.layout import Layout, most_cells
from submerge.history.recording import Recorded
from submerge.history.settings import FitSettings


def looked(parts: list[Recorded], width: int = 6) -> Layout:
    layout = Layout(width, FitSettings())
    for part in parts:
        layout.add(part)
    return layout


def rows_at(times: np.ndarray, machine: str = "m", file: str = "f") -> Recorded:
    return Recorded(machine, np.empty((len(times), 0)), times, file)


@given(
    st.lists(st.floats(0, 1e7), min_size=1, max_size=400),
    st.lists(st.integers(0, 400), max_size=5),
    st.integers(1, 3),
)
def test_parts_may_be_looked_at_apart(times: list[float], cuts: list[int], machines: int):
    """Merged, they show what one look shows: grid, period, span and names."""
    ordered = np.sort(np.round(np.array(times), 3)) + 1.7e9
    parts = [
        rows_at(part, f"m{m}", f"{m}-{i}")
        for m in range(machines)
        for i, part in enumerate(np.split(ordered, sorted(min(c, len(ordered)) for c in cuts)))
        if len(part)
    ]
    apart = Layout(6, FitSettings())
    for part in parts:
        apart.merged(looked([part]))

    assert looked(parts).laid_out() == apart.laid_out()


@settings(max_examples=25)
@given(st.integers(1, 30_000), st.floats(0.01, 3600))
def test_cells_are_as_short_as_their_number_allows(n: int, period: float):
    """Twice as many would be too many, or have fewer rows than a cell is to have."""
    times = 1.7e9 + np.round(period, 2) * np.arange(n)
    laid = looked([rows_at(times)]).laid_out()
    cells = len(np.unique(np.floor(times / laid.grid.unit)))
    halves = len(np.unique(np.floor(times / (laid.grid.unit / 2))))

    assert cells <= most_cells(6)
    assert halves > most_cells(6) or laid.grid.unit < 2 * 64 * 1.01 * np.round(period, 2) or n == 1


def test_files_without_times_share_cells_where_there_are_many():
    """A row is a second of its file."""
    parts = [Recorded("m", np.empty((60, 0)), None, f"{i}") for i in range(600)]
    laid = looked(parts).laid_out()

    assert 600 >> laid.grid.runs <= most_cells(6)
    assert (0.0, 64.0) == (laid.period_s, laid.grid.unit)
