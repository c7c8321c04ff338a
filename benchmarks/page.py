"""A room as a page of its own: where it was measured, what it says of itself, its tables.

The pages beside the rooms are what they print, and nothing else:

    python benchmarks/kernel_pca.py >benchmarks/kernel_pca.md
"""

import importlib.metadata
import os
import platform
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import click

import blas
from recorded import LIBRARIES, ROOT, cpu, mark_of, record
from report import JSON_HELP, Table, command_of


def page(room: Callable[[bool], list[Table]]) -> None:
    """Run a room from the command line: a page of markdown, or JSON for machines."""
    module = sys.modules[room.__module__]

    @click.command(help=module.__doc__)
    @click.option("--quick", is_flag=True, help="Smaller and fewer: minutes become seconds.")
    @click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
    def main(quick: bool, as_json: bool) -> None:
        pools, began = blas.check(), os.getloadavg()[0]
        tables = room(quick)
        if as_json:
            click.echo(record(module, command_of(module), tables, quick=quick))
            return
        click.echo(document(module, "--quick" if quick else "", tables, pools, began=began))

    main()


def document(
    module: ModuleType,
    arguments: str,
    tables: list[Table],
    pools: list[str],
    *,
    began: float | None = None,
) -> str:
    """Return a room's page: its command, the machine, what it says of itself, and its tables.

    arguments : of its command
    pools : as `blas.check` returns them
    began : the machine's load before, if it matters
    """
    title, about = module.__doc__.split("\n\n", 1)
    versions = (f"{name} {importlib.metadata.version(name)}" for name in LIBRARIES)
    load = "" if began is None else f"; load {began:.1f} at first, {os.getloadavg()[0]:.1f} at last"
    where = [
        f"`{command_of(module, arguments)}`",
        f"{cpu()}, {os.cpu_count()} cores{load}",
        f"Python {platform.python_version()}, {', '.join(versions)}; {'; '.join(pools)}",
    ]
    script = Path(module.__file__ or "").resolve().relative_to(ROOT).as_posix()
    parts = [f"# {title.rstrip('.')}", mark_of(script), "\n".join(f"* {line}" for line in where)]
    # A table heads a section here; on the page of all rooms, a part of one.
    parts += [about.strip(), *(table.markdown.removeprefix("#") for table in tables)]
    return "\n\n".join(parts)
