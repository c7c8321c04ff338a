"""A table's columns are the engine's channels: other ones are not learnt or scored as these."""

from __future__ import annotations

import numpy as np
import pytest

from submerge import SAPCA, Schema, SchemaMismatch, UsageError, merge

NAMES = ("flow", "speed", "heat", "load")


class Frame:
    """What of a table an engine looks at."""

    def __init__(self, *columns: object, rows: int = 60) -> None:
        self.columns = columns
        self._rows = np.random.default_rng(1).normal(size=(rows, len(columns)))

    def __array__(self, dtype: object = None, copy: object = None) -> np.ndarray:
        return self._rows


def test_columns_become_the_schemas_channels():
    """Rows without names are taken as before; so are columns that are numbers."""
    engine = SAPCA(rank=2).partial_fit(Frame(*NAMES)).partial_fit(np.ones((3, 4)))
    numbered = SAPCA(rank=2).partial_fit(Frame(0, 1, 2, 3))

    assert engine.schema.names == NAMES
    assert numbered.schema.names == ("x0", "x1", "x2", "x3")
    assert numbered.partial_fit(Frame(*NAMES)).n_samples_seen == 120


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (("flow", "heat", "speed", "load"), "expected columns speed, heat, got heat, speed: give"),
        (("flow", "speed", "heat", "noise"), "expected columns load, got noise: select"),
        ("abcd", "expected columns flow, speed, heat ..., got a, b, c ...: select"),
    ],
)
def test_other_columns_are_refused_and_change_nothing(columns, message):
    """In learning, and in scoring."""
    engine = SAPCA(rank=2).partial_fit(Frame(*NAMES))
    for call in (engine.partial_fit, engine.transform, engine.score_samples):
        with pytest.raises(UsageError, match=message):
            call(Frame(*columns))

    assert 60 == engine.n_samples_seen


def test_engines_of_other_columns_do_not_merge():
    """Those of the same columns do."""
    first, same, other = (
        SAPCA(rank=2).partial_fit(Frame(*names)).subspace
        for names in (NAMES, NAMES, tuple(reversed(NAMES)))
    )
    assert 120 == merge(first, same, rank=2).weight
    with pytest.raises(SchemaMismatch):
        merge(first, other, rank=2)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_real_tables(library):
    """Both give their columns."""
    frames = pytest.importorskip(library)
    values = np.random.default_rng(1).normal(size=(60, 4))
    frame = frames.DataFrame(dict(zip(NAMES, values.T, strict=True)))
    engine = SAPCA(rank=2).partial_fit(frame)

    assert engine.schema.names == NAMES
    with pytest.raises(UsageError, match="expected columns"):
        engine.transform(frame[list(reversed(NAMES))])


@pytest.mark.parametrize("columns", [("a", "a", "b", "c"), ("\ud800", "a", "b", "c"), (None,) * 4])
def test_columns_that_no_channel_can_be_called_by_are_nameless(columns):
    """Two alike, and text that is not Unicode: rows of such tables are learnt as any rows."""
    assert SAPCA(rank=2).partial_fit(Frame(*columns)).schema.names == ("x0", "x1", "x2", "x3")


def test_an_array_whose_columns_are_no_list_is_nameless():
    """An attribute of that name may be anything: a number, or a method."""
    frame = Frame(*NAMES)
    for other in (4, lambda: NAMES):
        frame.columns = other
        assert SAPCA(rank=2).partial_fit(frame).schema.names == ("x0", "x1", "x2", "x3")


def test_rows_without_names_are_not_asked_for_names(monkeypatch):
    """A call of one row costs nothing for names: those of a wide schema are not even made."""
    engine, named = SAPCA(rank=2).partial_fit(np.eye(4)), SAPCA(rank=2).partial_fit(Frame(*NAMES))
    monkeypatch.setattr(Schema, "names", property(lambda _: pytest.fail("names were made")))

    for each in (engine, named):
        each.partial_fit(np.ones((1, 4)))
        each.score_samples(np.ones((1, 4)))
    engine.partial_fit(Frame(*NAMES, rows=1))
