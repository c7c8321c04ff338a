"""The history's thread lives: neither who hangs up nor a bug ends it."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from submerge_aggregator.history.file import HistoryFile, ModelHeard, TrailHeard
from submerge_aggregator.history.recorder import HistoryRecorder, HistoryUnavailable
from support.patience import PATIENCE_S


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[HistoryRecorder]:
    recorder = HistoryRecorder(tmp_path / "h", 1 << 20)
    yield recorder
    recorder.close()


def test_a_cancelled_question_costs_no_other_its_answer(kept: HistoryRecorder) -> None:
    """A request that is cancelled cancels its question, which may wait for the thread then."""
    begun, goes_on = threading.Event(), threading.Event()

    def slow(_: HistoryFile) -> str:
        begun.set()
        assert goes_on.wait(PATIENCE_S)
        return "first"

    first = kept.ask(slow)
    assert begun.wait(PATIENCE_S)
    hung_up, last = kept.ask(lambda _: "second"), kept.ask(lambda _: "third")
    assert hung_up.cancel()
    goes_on.set()

    assert "first" == first.result(PATIENCE_S)
    assert "third" == last.result(PATIENCE_S)


def test_an_entry_that_cannot_be_kept_costs_itself(
    kept: HistoryRecorder, caplog: pytest.LogCaptureFixture
) -> None:
    """What comes with it is kept, it is counted, and the log has one line."""
    broken, all_there = ModelHeard(None), threading.Event()  # type: ignore[arg-type]
    kept.ask(lambda _: all_there.wait(PATIENCE_S))  # the three are written at once
    for entry in (broken, TrailHeard("room", "a", 600, b"\x09"), broken):
        kept.take(entry)
    all_there.set()
    found = kept.ask(lambda file: file.levels("room", range(99), most=9)).result(PATIENCE_S)

    assert ["a"] == list(found)
    assert 2 == kept.dropped
    assert 1 == caplog.text.count("entries are dropped")


def test_a_bug_at_a_write_costs_what_is_written(
    kept: HistoryRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Questions are refused then; none waits for ever."""

    def fails(*_: object) -> None:
        raise OverflowError("a bug")

    monkeypatch.setattr(HistoryFile, "put_levels", fails)
    kept.take(TrailHeard("room", "a", 600, b"\x09"))
    asked = kept.ask(lambda _: "answer")

    assert asked.exception(PATIENCE_S) is not None
    assert 1 == kept.dropped


def test_a_system_without_threads_costs_the_history_only(
    kept: HistoryRecorder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What was taken waits, and is kept once there is a thread."""

    def refuses(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", refuses)
        kept.take(TrailHeard("room", "a", 600, b"\x09"))
        with pytest.raises(HistoryUnavailable, match="no thread"):
            kept.ask(lambda _: "answer").result(PATIENCE_S)
    found = kept.ask(lambda file: file.levels("room", range(99), most=9)).result(PATIENCE_S)

    assert ["a"] == list(found)
    assert 0 == kept.dropped
