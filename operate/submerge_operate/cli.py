"""The `submerge` command, of tables that packages offer by entry points; exit status 0, 1 or 2.

A subcommand's module loads when it is called: `submerge --help` answers at once on a Pi.
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from submerge_client.config.plugins import plugins

if TYPE_CHECKING:
    from submerge_client.config.from_history import LearntSettings


class TableLine(NamedTuple):
    module: str
    summary: str
    install: str  # what to install for it, in words of pip


LAB = "submerge-lab"  # the distribution of the laboratory, which devices do without

ABSENT = {
    word: TableLine("", f"Not installed: pip install {LAB}", LAB)
    for word in ("demo", "lab", "replay")
}
"""Commands that one may look for where the laboratory is not installed."""

EARLIER = {
    "audit": "aggregator audit",
    "crowd": "lab crowd",
    "job": "jobs",
    "kits": "pki kits",
    "learn": "nodes learn",
    "page": "aggregator page",
    "plan": "lab plan",
    "restore": "backup restore",
    "simulate": "lab simulate",
    "simulate-jobs": "lab simulate-jobs",
    "token": "aggregator token",
}
"""Words of version 0.6, and those of today. They work for one release."""

FIRST = """\
submerge learns what is normal for a machine with many sensors, and reports when a reading is not.

Recorded readings:  submerge fit history.csv -o plant.model
                    submerge detect monday.csv --model plant.model
A broker:           submerge init --from mqtt://192.168.1.5, then submerge up --config box.toml
A fleet:            submerge aggregator init > root.toml, then submerge client init > client.toml;
                    submerge aggregator page --config root.toml --open shows it in a browser

All commands:       submerge --help"""
"""What to do first."""

PACKAGES = {"google": "protobuf", "grpc": "grpcio", "grpc_health": "grpcio-health-checking"}
"""Packages whose modules have other names."""

CALLED = "submerge_operate.called"
"""Under this name a context has the line of the command that is called."""


@cache
def commands() -> dict[str, TableLine]:
    """Return the commands of installed packages (entry points `submerge.commands`), by words."""
    # Two words are a command in a group, which may be of another package.
    found: dict[str, TableLine] = {}
    for entry in plugins("submerge.commands"):
        try:
            table = entry.load()
        except ImportError as error:  # of a stranger: the others work
            click.echo(f"submerge: no commands of {entry.name}: {error}", err=True)
            continue
        found |= {words: TableLine(*line) for words, line in table.items() if words not in found}
    return dict(sorted((ABSENT | found).items()))


def loaded(line: TableLine) -> click.Command:
    if not line.module:
        raise click.UsageError(
            f"this needs {line.install}, which is not installed: pip install {line.install}"
        )
    command = importlib.import_module(line.module).command
    assert isinstance(command, click.Command)  # noqa: S101
    return command


class Deferred(click.Command):
    """A subcommand that loads when it is called, not when its group lists it."""

    def __init__(self, name: str, line: TableLine) -> None:
        super().__init__(name, help=line.summary, short_help=line.summary)
        self.line = line

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        **extra: Any,
    ) -> click.Context:
        """Load the command, and have it read its arguments."""
        if parent is not None:
            parent.meta[CALLED] = self.line
        return loaded(self.line).make_context(info_name, args, parent, **extra)


class LazyGroup(click.Group):
    """Subcommands that load when they are called, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return [words for words in commands() if " " not in words]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a subcommand; None for an unknown one."""
        if cmd_name not in self.list_commands(ctx):
            return None
        command = loaded(commands()[cmd_name])
        if isinstance(command, click.Group):
            for words, line in commands().items():
                group, _, name = words.partition(" ")
                if group == cmd_name and name:
                    command.add_command(Deferred(name, line))
        return command

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Without arguments say what to do first: that is a question, not a mistake."""
        if not args and not ctx.resilient_parsing:
            click.echo(FIRST)
            ctx.exit()
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; say what to install if its packages are not there, or broken."""
        try:
            return super().invoke(ctx)
        except ImportError as error:
            module = (error.name or "submerge").partition(".")[0]
            if module.startswith("submerge") or CALLED not in ctx.meta:
                raise
            package = PACKAGES.get(module, module.replace("_", "-"))
            install = ctx.meta[CALLED].install
            quoted = f"'{install}'" if "[" in install else install
            raise click.UsageError(
                f"this needs {package}, which is not installed: pip install {quoted}"
            ) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Take earlier words for today's; refuse an unknown subcommand with the nearest one."""
        known = commands()
        if args[0] in EARLIER and args[0] not in known:
            today = EARLIER[args[0]]
            click.echo(f"submerge: `submerge {args[0]}` is now `submerge {today}`", err=True)
            args = [*today.split(), *args[1:]]
        ctx.invoked_subcommand = args[0]  # its module may lack what it imports
        if args[0] in known:
            ctx.meta[CALLED] = known[args[0]]
        elif not ctx.resilient_parsing:
            from difflib import get_close_matches  # late: a client that runs does not need it

            near = get_close_matches(args[0], self.list_commands(ctx), 1)
            if near:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl(
                [(name, commands()[name].summary) for name in self.list_commands(ctx)]
            )


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="submerge", prog_name="submerge")
@click.pass_context
def submerge(context: click.Context) -> None:
    """Streaming PCA for fleets of sensors: each device learns a subspace, and subspaces merge.

    Without a command it says what to do first.
    """
    # For `init --from`: clients and aggregators do not import what reads histories.
    context.obj = _learnt_settings


def _learnt_settings(history: str) -> LearntSettings:
    try:
        from submerge_files.fit.learnt_settings import learnt_settings
    except ImportError as error:
        raise click.UsageError(
            f"--from needs {error.name}, which is not installed: pip install 'submerge[files]'"
        ) from error
    return learnt_settings(Path(history))


def main() -> None:
    """Run the command; report bad input in one line."""
    # Before NumPy loads: our matrices are small, and threads that wait for each other make each
    # step many times slower on shared cores.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # gRPC would log lines of its own for each failed handshake. A port scan would fill the log.
    os.environ.setdefault("GRPC_VERBOSITY", "ERROR")
    try:
        submerge.main(standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as help_text:
        click.echo(help_text.format_message())
    except click.exceptions.Abort:
        sys.exit(130)
    except click.ClickException as error:
        context = getattr(error, "ctx", None)
        hint = f" (see {context.command_path} --help)" if context else ""
        _refuse(error.format_message() + hint)
    except BrokenPipeError:
        # The reader has enough. Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo("submerge: the disk is full: free some space", err=True)
        sys.exit(1)
    except Exception as error:
        from submerge.errors import SubmergeError

        if not isinstance(error, SubmergeError):
            raise
        _refuse(str(error))


def _refuse(message: str) -> None:
    from submerge_files.console.units import printable

    # It may quote names and files of others.
    click.echo(printable(f"submerge: {' '.join(message.split())}"), err=True)
    sys.exit(2)
