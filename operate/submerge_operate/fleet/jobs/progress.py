"""rounds_shown(): a line on stderr while a job runs.

On a terminal it is drawn in place; elsewhere each round has one. Under --quiet there is none.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from submerge_files.console.printable import printable


@contextmanager
def rounds_shown(*, shown: bool) -> Iterator[Callable[[str], None]]:
    """Yield a function that shows what is being done."""
    if not shown:
        yield lambda _: None
    elif sys.stderr.isatty():
        from rich.console import Console
        from rich.markup import escape

        with Console(stderr=True).status("") as status:
            yield lambda text: status.update(escape(printable(text)))
    else:
        yield lambda text: click.echo(printable(text), err=True)
