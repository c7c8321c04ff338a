"""What a room returns, and the command line that prints it."""

import io
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import click
import rich.box
import rich.console
import rich.table

import blas
import recorded

JSON_HELP = "Print JSON instead of markdown, with what it was measured with."


@dataclass(frozen=True)
class Table:
    """Rows of values under columns, each with its format; None prints as a dash."""

    title: str
    columns: dict[str, str]
    rows: list[tuple[object, ...]]
    notes: str = ""

    @classmethod
    def of_record(cls, values: dict) -> "Table":
        """Return a table as a record in JSON holds it."""
        rows = [tuple(row) for row in values["rows"]]
        return cls(values["title"], values["columns"], rows, values["notes"])

    @property
    def markdown(self) -> str:
        """The table as text that reads well before it is rendered."""
        table = rich.table.Table(box=rich.box.MARKDOWN)
        for name, spec in self.columns.items():
            table.add_column(name, justify="right" if spec else "left", no_wrap=True)
        for row in self.rows:
            pairs = zip(row, self.columns.values(), strict=True)
            table.add_row(*("-" if cell is None else format(cell, spec) for cell, spec in pairs))
        text = io.StringIO()
        console = rich.console.Console(file=text, width=1000, markup=False, highlight=False)
        console.print(table)
        return "\n\n".join(
            part for part in (f"### {self.title}", self.notes, text.getvalue().strip()) if part
        )


def command_of(module: ModuleType, arguments: str = "") -> str:
    """Return the command line of a room."""
    return f"python benchmarks/{Path(module.__file__ or '').name} {arguments}".strip()


def command(
    room: Callable[[bool], list[Table]], *, passes: Callable[[list[Table]], bool] | None = None
) -> None:
    """Run a room from the command line: markdown, or JSON for machines.

    With `passes`, the exit status is 1 where it returns False.
    """
    module = sys.modules[room.__module__]

    @click.command(help=module.__doc__)
    @click.option("--quick", is_flag=True, help="Smaller and fewer: minutes become seconds.")
    @click.option("--json", "as_json", is_flag=True, help=JSON_HELP)
    def main(quick: bool, as_json: bool) -> None:
        pools = blas.check()
        tables = room(quick)
        if as_json:
            click.echo(recorded.record(module, command_of(module), tables, quick=quick))
        else:
            click.echo("\n\n".join(["BLAS: " + "; ".join(pools), *(t.markdown for t in tables)]))
        sys.exit(passes is not None and not passes(tables))

    main()
