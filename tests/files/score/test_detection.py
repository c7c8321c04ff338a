"""`submerge score` and `submerge detect` say the same of the same rows."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from submerge.history.detection import AT_ONCE, JudgedRows
from submerge_files.detect.run import detect, request_of
from submerge_files.reader import ReadingOptions
from submerge_files.score.model import of_file
from submerge_files.score.run import ScoreRequest, score
from support.commands import shell
from support.pump_files import bad_day, readings, write


class Judged:
    """Takes what was judged, in place of curves."""

    def __init__(self) -> None:
        self.each: list[JudgedRows] = []

    def add(self, judged: JudgedRows) -> None:
        self.each.append(judged)


def uneven(rows: np.ndarray) -> np.ndarray:
    """Rows whose flow is read with far more noise in the second half, and some gaps."""
    rows = rows.copy()
    rows[::7, 2] = np.nan
    return rows


def both(folder: Path, files: list[str], model: Path) -> tuple[list[JudgedRows], list[JudgedRows]]:
    paths, judged, notes = [folder / name for name in files], Judged(), list[str]()
    by_file = ReadingOptions(node_by="file")
    rows, request = request_of([*map(str, paths)], model, by_file, "1 false per week", None)
    detect(rows, request, judged)  # type: ignore[arg-type]
    scored = score(ScoreRequest(of_file(model, None), (*paths,)), note=notes.append)
    return [part.judged for part in scored], judged.each


@pytest.mark.slow
@pytest.mark.parametrize("machines", [1, 2])
def test_statistics_and_blame_are_those_of_detect(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture, machines: int
) -> None:
    """In all rows by one mean; else until what `detect` goes on learning has moved."""
    submerge = shell(monkeypatch, capsys)
    names = [f"pump-{i}.csv" for i in range(machines)]
    for i, name in enumerate(names):
        write(tmp_path / name, readings(3000 * machines, i, level=i))
    model = tmp_path / "pump.model"
    how = ["--node-by", "file"] if machines > 1 else []
    fitted = submerge("fit", *(tmp_path / n for n in names), "-o", model, "--no-drill", *how)
    assert 0 == fitted.status
    day = bad_day()
    day[::7, 2] = np.nan
    write(tmp_path / names[0], day, first=20_160)

    scored, judged = both(tmp_path, names[:1], model)

    # A detector goes on learning how rows vary: means of machines, and errors of channels.
    rows = AT_ONCE if machines > 1 else 1440
    for kind in ("spe", "t2", "distance", "channel"):
        of_score = np.concatenate([part.scores.even[kind] for part in scored])
        of_detect = np.concatenate([each.scores.even[kind] for each in judged])
        first = slice(AT_ONCE if kind == "channel" else rows)
        np.testing.assert_allclose(of_score[first], of_detect[first], rtol=1e-9)
    for kind in judged[0].over.keys() - ({"channel"} if machines > 1 else set()):
        of_score = np.concatenate([part.over[kind] for part in scored])
        of_detect = np.concatenate([each.over[kind] for each in judged])
        first = slice(AT_ONCE if kind == "channel" else rows)
        np.testing.assert_allclose(of_score[first], of_detect[first], rtol=1e-9)
    assert {"ewma"} <= judged[0].over.keys() == scored[0].over.keys()
    blamed = np.concatenate([part.scores.blame() for part in scored])[:AT_ONCE]
    np.testing.assert_allclose(blamed, judged[0].scores.blame(), rtol=1e-9, atol=1e-12)
