"""`submerge fit`: files become a model, and a person hears what was learnt."""

from __future__ import annotations

import gzip
import hashlib
import json
import shlex
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from submerge_files import model_file
from support.commands import Ran, shell
from support.pump_files import NAMES, readings, write

Run = Callable[[str], Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `submerge` with a line of words."""
    submerge = shell(monkeypatch, capsys)
    return lambda words: submerge(*shlex.split(words))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a history of two weeks, which is the current one."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "history.csv", readings(4000))
    return tmp_path


def digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_it_says_what_it_has_learnt(folder: Path, run: Run):
    done = run("fit history.csv -o pump.model")

    assert 0 == done.status
    assert "rows       4,000 in 1 file, 2026-03-02 00:00:00 UTC to" in done.out
    assert "one every 60 s" in done.out
    assert "explained  99% of the variance by 1 direction" in done.out
    assert "model      pump.model" in done.out
    saved = model_file.read(folder / "pump.model")
    assert NAMES == saved.schema.names
    assert (4000, 60.0) == (saved.learnt.rows, saved.learnt.period_s)


@pytest.mark.usefixtures("folder")
def test_json_has_the_same(run: Run):
    told = json.loads(run("fit history.csv -o pump.model --json").out)

    assert (4000, 4000, 60.0, 1) == (*(told[k] for k in ("rows", "learnt", "period_s", "rank")),)
    assert list(NAMES) == told["channels"]


def test_the_same_rows_give_the_same_model(folder: Path, run: Run):
    """Files renamed, compressed, in another order, given twice, or cut in another way."""
    rows = readings(4000)
    run("fit history.csv -o whole.model")
    first, second = (
        write(folder / "b.csv", rows[:1500]),
        write(folder / "a.csv", rows[1500:], first=1500),
    )
    packed = folder / "z.csv.gz"
    packed.write_bytes(gzip.compress((folder / "history.csv").read_bytes()))
    run("fit z.csv.gz -o packed.model")
    run(f"fit {second.name} {first.name} -o parts.model")
    run(f"fit {first.name} {second.name} -o sorted.model")
    whole, parts = model_file.read(folder / "whole.model"), model_file.read(folder / "parts.model")

    assert digest(folder / "parts.model") == digest(folder / "sorted.model")
    assert whole.learnt.summary.scatter.tobytes() == parts.learnt.summary.scatter.tobytes()
    assert whole.model.maxima.packed == parts.model.maxima.packed
    same = model_file.read(folder / "packed.model")
    assert [each.key for each in whole.learnt.chunks] == [each.key for each in same.learnt.chunks]
    assert whole.model.limits.distance == same.model.limits.distance


def test_what_is_unlike_all_the_rest_is_left_out_and_named(folder: Path, run: Run):
    rows = readings(12_000)
    rows[6000:6200, 1] += 4
    write(folder / "history.csv", rows)
    done = run("fit history.csv -o pump.model")

    assert "left out   2026-03-06" in done.out
    assert "unlike all others; --keep-all learns them" in done.out
    assert "left out" not in run("fit history.csv -o pump.model --keep-all").out


def test_machines_share_a_model(folder: Path, run: Run):
    """A file for each; every one is measured from its own mean."""
    write(folder / "north.csv", readings(3000, 1))
    write(folder / "south.csv", readings(3000, 2, level=50.0))
    done = run("fit north.csv south.csv -o pumps.model --node-by file")

    assert 0 == done.status, done.err
    saved = model_file.read(folder / "pumps.model")
    assert "own" == saved.schema.center
    assert 2 == len(saved.learnt.monitors)


def test_a_constant_channel_is_named(folder: Path, run: Run):
    rows = readings(3000)
    rows[:, 2] = 7.0
    write(folder / "history.csv", rows)

    assert "channels   4; constant: current" in run("fit history.csv -o pump.model").out


@pytest.mark.usefixtures("folder")
def test_a_state_of_the_machine_can_be_asked_for(run: Run):
    done = run("fit history.csv -o pump.model --when 'flow > 40'")

    assert 0 == done.status
    assert "(other state)" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("fit none.csv -o a.model", "none.csv: expected a file, got nothing of that name"),
        ("fit history.csv -o history.csv", "history.csv exists and is no saved model"),
        ("fit history.csv -o no/a.model", "expected a folder no for a.model, got none: make it"),
        ("fit history.csv -o a.model --columns flow,presure", "did you mean 'pressure'?"),
        ("fit history.csv -o a.model --when 'flw > 3'", "flw"),
        ("fit history.csv -o a.model --long flow", "--long is two columns such as channel,value"),
        ("fit history.csv -o a.model --rank 0", "--rank"),
        ("fit history.csv", "-o"),
        ("fit", "FILE"),
    ],
)
def test_a_mistake_is_one_line_that_names_the_cure(folder: Path, run: Run, words: str, said: str):
    """Exit status 2, and no model is written."""
    done = run(words)

    assert 2 == done.status
    assert said in done.err
    assert 1 == len(done.err.strip().splitlines())
    assert not (folder / "a.model").exists()


def test_files_without_times_are_learnt(folder: Path, run: Run):
    """Rows count; the model can be read again."""
    write(folder / "plain.csv", readings(3000), timed=False)
    done = run("fit plain.csv -o plain.model")

    assert (0, "") == (done.status, done.err)
    assert "3,000 in 1 file, without times" in done.out
    assert "judged" in run("detect plain.csv --model plain.model").err


def test_rows_of_nothing_are_said_to_be_so(folder: Path, run: Run):
    write(folder / "flat.csv", np.ones((200, 4)))
    done = run("fit flat.csv -o a.model")

    assert (2, True) == (done.status, "expected channels that vary" in done.err)


def test_rows_without_times_are_learnt(folder: Path, run: Run):
    """The model says of no time when it was made."""
    write(folder / "plain.csv", readings(2000), timed=False)
    done = run("fit plain.csv -o plain.model")

    assert (0, "") == (done.status, done.err)
    assert "rows       2,000 in 1 file, without times" in done.out
    assert 0.0 == model_file.read(folder / "plain.model").model.created
