"""Frames of pandas and polars: index, names and times go in and come out."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

import submerge
from support.pump_files import BEGIN, FAULT, NAMES, bad_day, readings, write

FIRST = 20_160
DOCS = Path(__file__).parents[3] / "docs" / "histories.md"


@pytest.fixture(scope="module")
def pandas() -> ModuleType:
    return pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def polars() -> ModuleType:
    return pytest.importorskip("polars")


@pytest.fixture(scope="module")
def model() -> submerge.Model:
    return submerge.Model.fit(readings(FIRST), names=NAMES)


@pytest.fixture
def bad(pandas: ModuleType):
    """Return the bad day, as pandas has it: indexed by times in UTC."""
    index = pandas.date_range(BEGIN, periods=1440, freq="min", name="time")
    return pandas.DataFrame(bad_day(), index=index, columns=list(NAMES))


@pytest.fixture
def good(polars: ModuleType):
    """Return the same day of polars, with a column of times."""
    minutes = np.datetime64(BEGIN.replace(tzinfo=None), "us") + np.arange(1440) * 60_000_000
    return polars.DataFrame(
        {"at": minutes} | dict(zip(NAMES, bad_day().T.copy(), strict=True)) | {"note": ["x"] * 1440}
    )


@pytest.mark.slow
def test_a_frame_learns_what_its_file_does(pandas: ModuleType, tmp_path: Path):
    """The same rows and times give the same numbers."""
    rows = readings(3000).round(3)
    write(tmp_path / "history.csv", rows)
    index = pandas.date_range(BEGIN, periods=3000, freq="min")
    frame = pandas.DataFrame(rows, index=index, columns=list(NAMES))
    ours, its = submerge.Model.fit(frame), submerge.Model.fit(tmp_path / "history.csv")

    assert repr(its) == repr(ours)
    day = bad_day()
    assert its.score(day)["distance"].tobytes() == ours.score(day)["distance"].tobytes()


def test_pandas_keeps_its_index(model: submerge.Model, bad):
    scores = model.score(bad)

    assert bad.index.equals(scores.index)
    own = ["distance", "spe", "t2", "over", "over_spe", "over_t2"]
    assert [*own, "alarm_ewma", "filled"] == [*scores]
    assert model.score(bad_day())["spe"].tobytes() == scores["spe"].to_numpy().tobytes()


def test_an_alarm_has_labels_of_the_index(model: submerge.Model, bad):
    """So that `loc` shows its rows, with a time zone and without one."""
    for frame in (bad, bad.tz_localize(None), bad.tz_convert("Asia/Tokyo")):
        (alarm,) = model.detect(frame)
        rows = frame.loc[alarm.began : alarm.ended]

        assert FAULT.start <= frame.index.get_loc(alarm.began) <= FAULT.start + 10
        assert 90 <= len(rows) <= 200
        assert frame.index.tz == alarm.began.tz


def test_columns_go_by_name(model: submerge.Model, bad):
    """In any order, beside others, of any type of number."""
    mixed = bad[[*reversed(NAMES)]].assign(note="x", more=1).astype({"flow": "Float64"})

    assert model.score(bad).equals(model.score(mixed))


def test_a_missing_value_of_pandas_is_a_gap(model: submerge.Model, bad, pandas: ModuleType):
    frame = bad.astype({"flow": "Float64"})
    frame.iloc[3, 0] = pandas.NA

    assert [3] == np.flatnonzero(model.score(frame)["filled"]).tolist()


def test_a_column_of_times_does_as_well(model: submerge.Model, bad):
    (alarm,), (same,) = model.detect(bad.reset_index()), model.detect(bad)

    assert (same.began, same.ended) == (alarm.began, alarm.ended)


def test_pandas_explains_by_channel(model: submerge.Model, bad):
    one, two = model.explain(bad, 845), model.explain(bad, [845, -1])

    assert "flow" == one.index[0]
    assert ["value", "expected", "difference", "share", "twin"] == [*one]
    assert one.equals(two.loc[bad.index[845]])
    assert (8, bad.index[-1]) == (len(two), two.index[-1][0])


def test_polars_gives_polars(model: submerge.Model, good):
    """With the column of times beside the scores."""
    scores, (alarm,) = model.score(good), model.detect(good)

    assert type(good) is type(scores)
    assert "at" == scores.columns[0]
    assert good["at"].equals(scores["at"])
    assert model.score(bad_day())["spe"].tobytes() == scores["spe"].to_numpy().tobytes()
    assert good["at"].to_list().index(alarm.began) in range(FAULT.start, FAULT.start + 11)
    assert ["flow"] == model.explain(good, 845)["channel"].to_list()[:1]


def test_a_missing_value_of_polars_is_a_gap(model: submerge.Model, good, polars: ModuleType):
    flow = good["flow"].to_list()
    flow[3] = None
    frame = good.with_columns(polars.Series("flow", flow))

    assert [3] == np.flatnonzero(model.score(frame)["filled"]).tolist()


def test_what_is_left_out_is_said(bad):
    """A column of text is none of numbers, even if numbers stand in it."""
    with pytest.warns(UserWarning, match=r"column state is .* and is left out") as caught:
        submerge.Model.fit(bad.assign(state="1,5"))

    assert __file__ == caught[0].filename


def test_an_index_of_text_is_no_clock(bad):
    """As `read_csv` makes it without `parse_dates`: that is said, and `time="none"` takes it."""
    text = bad.set_axis(bad.index.astype(str))
    with pytest.warns(UserWarning, match=r"the index is .*: rows are learnt without times"):
        submerge.Model.fit(text)

    assert 0 == submerge.Model.fit(text, time="none").period_s


def test_headings_of_two_levels_are_joined(bad, pandas: ModuleType):
    bad.columns = pandas.MultiIndex.from_product([["pump"], NAMES])

    assert "pump.flow" == submerge.Model.fit(bad).channels[0]


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda bad: bad.rename(columns={"pressure": "presure"}), "did you mean 'presure'"),
        (lambda bad: bad.set_axis([*"abcd"], axis=1), "it has a, b, c, d"),
        (lambda bad: bad.astype({"flow": str}), "expected a column of numbers, got"),
        (lambda bad: bad[::-1], "row 1: expected no time before .*; sort the rows by time"),
        (lambda bad: bad.set_axis([*bad.index[:-1], None]), "row 1439: expected a time"),
        (lambda bad: bad.assign(a=bad.index, b=bad.index).reset_index(drop=True), "time='a'"),
        (lambda bad: bad.set_axis([*NAMES[:3], "flow"], axis=1), "'flow' twice"),
        (lambda bad: bad["flow"], "got Series"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_cure(model: submerge.Model, bad, change, said: str):
    with pytest.raises(submerge.UsageError, match=said) as caught:
        model.score(change(bad))

    assert 1 == len(str(caught.value).splitlines())


def test_a_lazy_frame_has_to_be_collected(model: submerge.Model, good):
    with pytest.raises(submerge.UsageError, match="collect"):
        model.score(good.lazy())


@pytest.mark.slow
@pytest.mark.usefixtures("pandas")
def test_the_lines_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    """docs/histories.md, "In Python": the alarm of Monday, and what the others say."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "history.csv", readings(FIRST))
    write(tmp_path / "monday.csv", bad_day(), first=FIRST)
    (lines,) = re.findall(r"```python\n(.*?)```", DOCS.read_text(), re.DOTALL)

    exec(lines, names := {})  # noqa: S102

    said = capsys.readouterr().out
    assert "2026-03-16 14:0" in said
    assert "flow" == names["model"].explain(names["monday"], names["worst"]).index[0]
    assert (tmp_path / "pump.model").exists()


def test_of_several_columns_of_times_the_one_that_goes_on_is_read(pandas: ModuleType, bad):
    """A start of an export is no clock; of two that go on one has to be named."""
    frame = bad.reset_index().assign(start=bad.index[0])
    frame = frame[["start", "time", *NAMES]]

    with pytest.warns(UserWarning, match="column start holds times too and is left out"):
        model = submerge.Model.fit(frame)

    assert 60.0 == model.period_s
    later = frame.assign(received=frame["time"] + pandas.Timedelta("2s"))
    with pytest.raises(submerge.UsageError, match=r"got time, received; name one.* time='time'"):
        submerge.Model.fit(later)


def test_rows_of_a_frame_that_share_times_are_noted(bad):
    """Dates without hours, and stamps by the minute, say how many rows have one time."""
    days = bad.set_axis(bad.index.floor("D"))

    with pytest.warns(UserWarning, match="^1,440 rows have 1 time, 1,440 of them one: if times"):
        submerge.Model.fit(days)
