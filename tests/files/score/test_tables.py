"""`submerge score` on files of every format: times and kept columns go along with their rows."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from submerge import Channel, Schema
from support.commands import shell
from support.score_files import LIMITS, NAMES, SCHEMA, column, kept, learnt, some_rows, table

pa = pytest.importorskip("pyarrow")
feather = pytest.importorskip("pyarrow.feather")
parquet = pytest.importorskip("pyarrow.parquet")

ROWS = some_rows(50)
BEGIN = datetime(2026, 11, 23, 10, tzinfo=UTC)
MOMENTS = [BEGIN + timedelta(minutes=i) for i in range(len(ROWS))]
ISO = [f"{moment:%Y-%m-%dT%H:%M:%S}Z" for moment in MOMENTS]
GERMAN = [f"{moment:%d.%m.%Y %H:%M}" for moment in MOMENTS]
BATCHES = [f"batch {i // 10}" for i in range(len(ROWS))]


@pytest.fixture
def submerge(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    kept(tmp_path / "m.model", SCHEMA, summary=learnt(), limits=LIMITS)
    run = shell(monkeypatch, capsys)

    def score(*arguments: object):
        return run("score", *arguments, "--model", "m.model")

    return score


def text(path: Path, times: list[str] = ISO, *, delimiter: str = ",") -> Path:
    """A table with a batch, then the time, then the readings."""
    with path.open("w", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["batch", "at (time)", *NAMES])
        for row in zip(BATCHES, times, ROWS.tolist(), strict=True):
            writer.writerow([row[0], row[1], *map(repr, row[2])])
    return path


def arrow() -> pa.Table:
    columns = {"batch": BATCHES, "when": pa.array(MOMENTS, pa.timestamp("us", tz="UTC"))}
    return pa.table(columns | dict(zip(NAMES, ROWS.T, strict=True)))


@pytest.mark.parametrize("kind", ["csv", "german", "tsv", "gzip", "parquet", "arrow"])
def test_every_format_gives_the_same_scores_with_its_times(submerge, tmp_path, kind):
    """Text as it stands in a text file; ISO 8601 in UTC of a column of times."""
    expected = GERMAN if kind == "german" else ISO
    path = tmp_path / "x.bin"
    match kind:
        case "csv" | "german":
            text(path, expected)
        case "tsv":
            text(path, delimiter="\t")
        case "gzip":
            path.write_bytes(gzip.compress(text(tmp_path / "x.csv").read_bytes()))
        case "parquet":
            parquet.write_table(arrow(), path)
        case "arrow":
            feather.write_feather(arrow(), path)
    ran = submerge(path, "--keep", "batch")
    lines = table(ran.out)

    np.savetxt(tmp_path / "bare.dat", ROWS)
    bare = table(submerge(tmp_path / "bare.dat").out)
    assert ["file", "row", "time", "batch", "spe"] == [*lines[0]][:5]
    assert (expected, BATCHES) == ([x["time"] for x in lines], [x["batch"] for x in lines])
    assert column(bare, "spe") == pytest.approx(column(lines, "spe"))
    assert "left out" not in ran.err


def test_json_has_them_as_keys(submerge, tmp_path):
    """A row that cannot be scored has them, too."""
    path = text(tmp_path / "x.csv")
    with path.open("a") as file:
        file.write(f"last,{ISO[49]},,,,,,\n")
    ran = submerge(path, "--keep", "batch", "--json")
    lines = [json.loads(line) for line in ran.out.splitlines()]

    assert [*lines[0]][:5] == ["file", "row", "time", "batch", "spe"]
    assert (ISO[3], BATCHES[3]) == (lines[3]["time"], lines[3]["batch"])
    last = {"file": str(path), "row": 51, "time": ISO[49], "batch": "last", "unscored": "gaps"}
    assert last == lines[50]


def test_a_file_without_times_has_no_column_of_them(submerge, tmp_path):
    """Beside one with times its cells are empty."""
    timed = text(tmp_path / "x.csv")
    np.savetxt(tmp_path / "y.dat", ROWS)
    alone = table(submerge("y.dat").out)
    both = table(submerge(timed, "y.dat").out)
    none = submerge(timed, "--time", "none")

    assert "time" not in alone[0]
    assert [*ISO, *[""] * 50] == [line["time"] for line in both]
    assert "time" not in table(none.out)[0]
    assert "left out 2 columns that the model has no channel for: batch, at (time)" in none.err


def test_times_that_cannot_be_read_are_no_error(submerge, tmp_path):
    """Unless they are asked for; they may be kept as text."""
    times = [f"03/04/2026 {i // 60:02}:{i % 60:02}" for i in range(50)]
    with text(tmp_path / "x.csv").open() as file:
        rows = list(csv.DictReader(file))
    with (tmp_path / "x.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["date", *NAMES])
        writer.writerows(
            [time, *(row[name] for name in NAMES)] for time, row in zip(times, rows, strict=True)
        )
    ran = submerge("x.csv", "--keep", "date")
    asked = submerge("x.csv", "--time", "date")

    assert times == [line["date"] for line in table(ran.out)]
    assert "note: no times are carried along, since one column is unclear: x.csv, column" in ran.err
    assert (2, 1) == (asked.status, asked.err.count("\n"))


def test_folders_and_patterns_are_searched(submerge, tmp_path):
    (tmp_path / "in").mkdir()
    for name in ("b.csv", "a.tsv"):
        text(tmp_path / "in" / name)
    expected = [str(tmp_path / "in" / name) for name in ("a.tsv", "b.csv")]

    for given in ("in", "in/*"):
        files = dict.fromkeys(line["file"] for line in table(submerge(tmp_path / given).out))
        assert expected == [*files]


def test_a_long_table_is_scored_by_times(submerge, tmp_path):
    with (tmp_path / "x.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["time", "tag", "value"])
        for time, row in zip(ISO, ROWS.tolist(), strict=True):
            writer.writerows([time, name, value] for name, value in zip(NAMES, row, strict=True))
    lines = table(submerge("x.csv", "--long", "tag,value").out)

    wide = table(submerge(text(tmp_path / "y.csv")).out)
    assert column(wide, "spe") == pytest.approx(column(lines, "spe"))
    assert ISO == [line["time"] for line in lines]


def test_a_log_of_motes_has_the_times_of_its_epochs(submerge, tmp_path):
    """An epoch a row; names are by place."""
    with (tmp_path / "x.log").open("w") as file:
        for i, row in enumerate(ROWS.tolist()):
            for mote, value in enumerate(row, 1):
                file.write(f"2004-03-31 03:{i:02}:1{mote}.5 {i} {mote} {value} 40 11 2.6\n")
    names = "".join(f"mote{i}," for i in range(1, 7)).rstrip(",")
    schema = Schema(tuple(map(Channel, names.split(","))), scaling=SCHEMA.scaling)
    kept(tmp_path / "m.model", schema, summary=learnt(schema), limits=None)
    lines = table(submerge("x.log").out)

    assert [f"2004-03-31T03:{i:02}:11.500000Z" for i in range(50)] == [
        line["time"] for line in lines
    ]


@pytest.mark.parametrize("kind", ["csv", "parquet"])
def test_rows_in_another_state_have_a_line_without_a_score(submerge, tmp_path, kind):
    """A column of text is compared as in `fit`; a row without a state is in none that is known."""
    states = [["RUN", "STOP", "RUN", ""][i % 4] for i in range(len(ROWS))]
    columns = {"State": states} | dict(zip(NAMES, ROWS.T.tolist(), strict=True))
    path = tmp_path / f"x.{kind}"
    if kind == "parquet":
        parquet.write_table(pa.table(columns), path)
    else:
        with path.open("w", newline="") as file:
            csv.writer(file).writerows([[*columns], *zip(*columns.values(), strict=True)])
    all_rows = table(submerge(path, "--skip", "State").out)
    running = table(submerge(path, "--when", "State == RUN", "--keep", "State").out)
    both = table(submerge(path, "--when", f"{NAMES[0]} > 20 and State != STOP").out)
    none = submerge(path, "--when", "State == RUNS")

    expected = ["" if state == "RUN" else "other state" for state in states]
    assert (expected, states) == (
        [line["unscored"] for line in running],
        [line["State"] for line in running],
    )
    assert [x["spe"] for x in all_rows][::2] == [x["spe"] for x in running][::2]
    inside = (ROWS[:, 0] > 20) & np.array([state == "RUN" for state in states])
    assert inside.tolist() == [not line["unscored"] for line in both]
    assert (2, True) == (none.status, "expected rows where State == RUNS (--when)" in none.err)


def test_lags_reach_into_rows_of_another_state(submerge, tmp_path):
    """They are what was read before, as on a client."""
    names = [*"abc", *(f"{name}-1" for name in "abc")]
    schema = Schema(tuple(map(Channel, names)))
    rows, lagged = some_rows(20)[:, :3], np.hstack([some_rows(401, 7)[1:, :3]] * 2)
    kept(tmp_path / "m.model", schema, summary=learnt(schema, lagged))
    with (tmp_path / "x.csv").open("w", newline="") as file:
        lines = ([*row, "off" if i == 8 else "on"] for i, row in enumerate(rows.tolist()))
        csv.writer(file).writerows([[*"abc", "mode"], *lines])
    all_rows = table(submerge("x.csv").out)
    on = table(submerge("x.csv", "--when", "mode == on").out)

    why = ["lead-in", *[""] * 7, "other state", *[""] * 11]
    assert why == [line["unscored"] for line in on]
    assert all_rows[:8] + all_rows[9:] == on[:8] + on[9:]


def test_a_channel_that_is_called_like_a_time_is_a_channel(submerge, tmp_path):
    schema = Schema(tuple(map(Channel, ("time", *NAMES[1:]))), scaling=SCHEMA.scaling)
    kept(tmp_path / "m.model", schema, summary=learnt(schema))
    rows = ROWS.copy()
    rows[:, 0] = np.arange(50)
    with (tmp_path / "x.csv").open("w", newline="") as file:
        csv.writer(file).writerows([schema.names, *rows.tolist()])
    ran = submerge("x.csv")

    assert (0, False) == (ran.status, "time" in table(ran.out)[0])


@pytest.mark.parametrize("times", [ISO, [str(m.timestamp()) for m in MOMENTS]], ids=["iso", "unix"])
def test_parquet_out_has_the_types_of_its_columns(submerge, tmp_path, times):
    """The same scores as in CSV, times as times, null for an empty cell."""
    path = text(tmp_path / "x.csv", times)
    with path.open("a") as file:
        file.write(f"last,{times[-1]},,,,,,\n")
    lines = table(submerge(path, "--keep", "batch").out)
    ran = submerge(path, "--keep", "batch", "-o", "s.parquet")
    again = submerge(path, "--keep", "batch", "-o", "s.parquet")
    found = parquet.read_table(tmp_path / "s.parquet")

    assert (0, 0) == (ran.status, again.status)
    assert [*lines[0]] == found.column_names
    assert [*MOMENTS, MOMENTS[-1]] == found["time"].to_pylist()
    assert [*BATCHES, "last"] == found["batch"].to_pylist()
    assert column(lines[:50], "spe") == pytest.approx(found["spe"].to_numpy()[:50], rel=1e-8)
    assert [line["top1"] or None for line in lines] == found["top1"].to_pylist()
    over = [float(line["over"]) if line["over"] else None for line in lines]
    assert over == found["over"].to_pylist()
    assert (None, "gaps") == (found["filled"][50].as_py(), found["unscored"][50].as_py())


def test_only_scores_are_overwritten_by_parquet(submerge, tmp_path):
    path = text(tmp_path / "x.csv")
    parquet.write_table(arrow(), tmp_path / "thesis.parquet")
    (tmp_path / "notes.parquet").write_text("my notes")

    for name in ("thesis.parquet", "notes.parquet"):
        ran = submerge(path, "-o", name)
        assert (2, 1) == (ran.status, ran.err.count("\n"))
        assert f"{name} exists and has no scores in it" in ran.err


@pytest.mark.parametrize("arguments", [("-o", "s.parquet"), ()])
def test_without_pyarrow_the_extra_is_named(submerge, tmp_path, monkeypatch, arguments):
    """For Parquet out and for Parquet in."""
    path = text(tmp_path / "x.csv")
    if not arguments:
        path = tmp_path / "x.parquet"
        parquet.write_table(arrow(), path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    ran = submerge(path, *arguments)

    assert (2, 1) == (ran.status, ran.err.count("\n"))
    assert "pip install 'submerge[files]'" in ran.err
