"""watch(): a view of a running aggregator that goes on until Ctrl-C."""

from __future__ import annotations

import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, TypeVar

import click

from submerge_files.console.options import flag_option
from submerge_files.console.ways import NoAnswer

if TYPE_CHECKING:
    from rich.console import RenderableType

WATCH_S = 3.0  # between two looks

WATCH = flag_option(
    "--watch",
    "Go on until Ctrl-C: draw it again every few seconds; where there is no terminal, print each"
    " change.",
    "watched",
)

Content = TypeVar("Content")
Part = TypeVar("Part")


@dataclass(frozen=True, slots=True)
class LiveView(Generic[Content]):
    look: Callable[[], Content]
    draw: Callable[[Content], RenderableType]
    # returns the lines of what has changed since the content before; None at first
    lines: Callable[[Content | None, Content], list[str]]


def watch(
    view: LiveView[Content], *, as_json: bool, wait: Callable[[float], object] = time.sleep
) -> None:
    """Show a view until Ctrl-C; raises NoAnswer if the first look gets no answer."""
    with until_interrupted():
        if sys.stdout.isatty() and not as_json:
            _draw(view, wait)
        else:
            _print(view, wait)


@contextmanager
def until_interrupted() -> Iterator[None]:
    """End the body in order at Ctrl-C, also where a script's `&` has set SIGINT to be ignored."""
    # For the main thread, as Python's signal handlers are.
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    except KeyboardInterrupt:
        return
    finally:
        signal.signal(signal.SIGINT, handler)


def looks(
    look: Callable[[], Content], every_s: float, wait: Callable[[float], object]
) -> Iterator[Content | NoAnswer]:
    """Yield what each look finds, without end; after the first one also that it got no answer."""
    answered = False
    while True:
        try:
            found: Content | NoAnswer = look()
        except NoAnswer as error:
            if not answered:
                raise
            found = error
        answered = True
        yield found
        wait(every_s)


def answered(
    look: Callable[[], Content],
    every_s: float,
    wait: Callable[[float], object],
    complain: Callable[[str], None],
) -> Iterator[Content]:
    """Yield what each look finds; an aggregator that stops answering is complained of once."""
    away = False
    for found in looks(look, every_s, wait):
        if not isinstance(found, NoAnswer):
            away = False
            yield found
        elif not away:
            away = True
            complain(f"{found} Asking again until it answers")


def complain(words: str) -> None:
    click.echo(f"submerge: {words}", err=True)


def differences(
    before: Mapping[str, Part] | None, after: Mapping[str, Part]
) -> list[tuple[str, Part | None]]:
    """Return the parts that are new or other than before, and None for those that are gone."""
    old = {} if before is None else before
    changed: list[tuple[str, Part | None]] = [
        (name, part) for name, part in after.items() if name not in old or old[name] != part
    ]
    return changed + [(name, None) for name in old if name not in after]


def _print(view: LiveView[Content], wait: Callable[[float], object]) -> None:
    before: Content | None = None
    for found in answered(view.look, WATCH_S, wait, complain):
        for line in view.lines(before, found):
            click.echo(line)
        before = found


def _draw(view: LiveView[Content], wait: Callable[[float], object]) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    shown: RenderableType = ""
    with Live(auto_refresh=False) as live:
        for found in looks(view.look, WATCH_S, wait):
            now = time.strftime("%H:%M:%S")
            if isinstance(found, NoAnswer):
                head = Text(f"{now}  {found} Asking again; this is how it was:")
            else:
                head, shown = Text(f"{now}  Ctrl-C ends"), view.draw(found)
            live.update(Group(head, shown), refresh=True)
