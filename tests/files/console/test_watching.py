"""`--watch`: what goes on until Ctrl-C, and outlives an aggregator that restarts."""

from __future__ import annotations

import signal
from collections.abc import Callable
from typing import Any

import pytest

from submerge_files.console.ways import NoAnswer
from submerge_operate.fleet.watch import WATCH_S, LiveView, differences, watch

ANSWERS: list[str | None] = ["one", "one", None, None, "two"]
"""What looks find; None: no answer."""


def run(answers: list[str | None], **more: Any) -> list[str]:
    """Watch until there are no more answers, then press Ctrl-C; return what was drawn."""
    waiting, drawn = list(answers), []

    def look() -> str:
        found = waiting.pop(0)
        if found is None:
            raise NoAnswer("no aggregator answers.")
        return found

    def draw(content: str) -> str:
        drawn.append(content)
        return content

    def wait(_: float) -> None:
        if not waiting:
            signal.raise_signal(signal.SIGINT)

    def lines(before: str | None, after: str) -> list[str]:
        return [after] if before != after else []

    watch(LiveView(look, draw, lines), wait=wait, **{"as_json": False, **more})
    return drawn


@pytest.fixture
def on_a_terminal(monkeypatch) -> Callable[[], None]:
    """Have the output be a terminal's."""

    def pretend() -> None:
        monkeypatch.setattr("sys.stdout.isatty", lambda: True)
        monkeypatch.setenv("TERM", "xterm")

    return pretend


def test_without_a_terminal_each_change_is_a_line(capsys):
    """An aggregator that is away for two looks is complained of once."""
    assert [] == run(ANSWERS)
    said = capsys.readouterr()

    assert "one\ntwo\n" == said.out
    assert "submerge: no aggregator answers. Asking again until it answers\n" == said.err


def test_on_a_terminal_it_is_drawn_again(capsys, on_a_terminal):
    """In place; what was there stays while there is no answer."""
    on_a_terminal()
    assert ["one", "one", "two"] == run(ANSWERS)
    said = capsys.readouterr()

    assert 2 == said.out.count("no aggregator answers. Asking again; this is how it was:")
    assert ("\x1b[1A" in said.out, "") == (True, said.err)


def test_json_is_never_drawn(capsys, on_a_terminal):
    on_a_terminal()
    assert [] == run(ANSWERS, as_json=True)
    assert "one\ntwo\n" == capsys.readouterr().out


def test_an_aggregator_that_is_not_there_at_first_is_an_error():
    with pytest.raises(NoAnswer):
        run([None, "one"])


def test_ctrl_c_works_again_as_before():
    before = signal.getsignal(signal.SIGINT)
    run(["one"])
    assert before is signal.getsignal(signal.SIGINT)


def test_differences_are_what_is_new_other_or_gone():
    after = {"a": 1, "b": 3, "c": 4}

    assert [("a", 1), ("b", 3), ("c", 4)] == differences(None, after)
    assert [("b", 3), ("c", 4), ("d", None)] == differences({"a": 1, "b": 2, "d": 5}, after)
    assert [] == differences(after, dict(after))


def test_the_time_between_looks_is_stated():
    assert 1.0 <= WATCH_S <= 10.0
