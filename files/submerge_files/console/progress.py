"""Progress of long work, on stderr, and only on a terminal."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

PATIENCE_S = 2.0  # shorter work shows nothing, where the total is unknown


@contextmanager
def advancing(
    what: str, total: int | None = None, *, shown: bool = True
) -> Iterator[Callable[[int], None]]:
    """Show a bar for `total` steps, or how many are done; the body calls what is yielded."""
    if not shown or not sys.stderr.isatty():
        yield lambda _: None
        return
    from rich import progress as rich
    from rich.console import Console

    columns: tuple[rich.ProgressColumn, ...] = (
        *(rich.TextColumn(what), rich.BarColumn(), rich.TextColumn("{task.percentage:>3.0f} %")),
        rich.TimeRemainingColumn(),
    )
    if total is None:
        count = rich.TextColumn("{task.completed:,.0f} " + what)
        columns = rich.SpinnerColumn(), count, rich.TimeElapsedColumn()
    bar = rich.Progress(*columns, console=Console(stderr=True), transient=True)
    task, begun = bar.add_task(what, total=total), time.monotonic()
    patience_s = PATIENCE_S if total is None else 0.0
    with ExitStack() as running:

        def advance(steps: int) -> None:
            if not bar.live.is_started and time.monotonic() - begun >= patience_s:
                running.enter_context(bar)
            bar.advance(task, steps)

        advance(0)
        yield advance
