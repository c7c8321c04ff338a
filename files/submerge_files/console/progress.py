"""Progress of long work, on stderr, and only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

PATIENCE_S = 2.0  # shorter work needs no bar


@contextmanager
def advancing(what: str, total: int) -> Iterator[Callable[[int], None]]:
    """Show a bar for `total` steps; the body calls the yielded function with steps done."""
    if not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (TextColumn(what), BarColumn(), TextColumn("{task.percentage:>3.0f} %"))
    with Progress(
        *columns, TimeRemainingColumn(), console=Console(stderr=True), transient=True
    ) as bar:
        task = bar.add_task(what, total=total)
        yield lambda steps: bar.advance(task, steps)


@contextmanager
def counting(what: str, *, shown: bool = True) -> Iterator[Callable[[int], None]]:
    """Show how much is done where the total is unknown."""
    # Work of less than `PATIENCE_S` shows nothing. The body calls the yielded function with steps
    # done.
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.completed:,.0f} " + what), TimeElapsedColumn())
    bar = Progress(SpinnerColumn(), *columns, console=Console(stderr=True), transient=True)
    task, begun = bar.add_task(what, total=None), time.monotonic()
    with ExitStack() as running:

        def advance(steps: int) -> None:
            if not bar.live.is_started and time.monotonic() - begun > PATIENCE_S:
                running.enter_context(bar)
            bar.advance(task, steps)

        yield advance
