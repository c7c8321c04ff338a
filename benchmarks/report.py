"""What a room returns, and the command line that prints it."""

import io
import json
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

import click
import rich.box
import rich.console
import rich.table

import blas


@dataclass(frozen=True)
class Table:
    """Rows of values under columns, each with its format; None prints as a dash."""

    title: str
    columns: dict[str, str]
    rows: list[tuple[object, ...]]
    notes: str = ""

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


def command(
    room: Callable[[bool], list[Table]], *, passes: Callable[[list[Table]], bool] | None = None
) -> None:
    """Run a room from the command line: markdown, or JSON for machines.

    With `passes`, the exit status is 1 where it returns False.
    """

    @click.command(help=sys.modules[room.__module__].__doc__)
    @click.option("--quick", is_flag=True, help="Smaller and fewer: minutes become seconds.")
    @click.option("--json", "as_json", is_flag=True, help="Print JSON instead of markdown.")
    def main(quick: bool, as_json: bool) -> None:
        pools = blas.check()
        tables = room(quick)
        if as_json:
            click.echo(json.dumps({"blas": pools, "tables": [asdict(table) for table in tables]}))
        else:
            click.echo("\n\n".join(["BLAS: " + "; ".join(pools), *(t.markdown for t in tables)]))
        sys.exit(passes is not None and not passes(tables))

    main()
