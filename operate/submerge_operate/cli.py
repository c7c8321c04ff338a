"""The `submerge` command.

This file imports click only; a subcommand's module loads when it is called, so that
`submerge --help` answers at once on a Pi. Exit status: 0 done, 1 failed, 2 bad input
(one line on stderr: what was expected, what was found, what to do).
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

if TYPE_CHECKING:
    from submerge_client.config.from_history import LearntSettings


class Subcommand(NamedTuple):
    """A subcommand: its module below `submerge_`, which calls it `command`, and what it does."""

    module: str
    summary: str


SUBCOMMANDS = {
    "demo": Subcommand("lab.demo.command", "Show the whole system on a generated room."),
    "replay": Subcommand("lab.replay.command", "Stream files as if they were live."),
    "crowd": Subcommand("lab.crowd.command", "Run simulated nodes, each a client of its own."),
    "simulate": Subcommand("lab.simulate.command", "Run a fleet in virtual time, with faults."),
    "simulate-jobs": Subcommand("lab.simulate.jobs", "Run jobs in virtual time, with faults."),
    "plan": Subcommand("lab.plan.command", "Say what a fleet of any size would need."),
    "init": Subcommand("operate.init.command", "Write a configuration of this machine, for `up`."),
    "up": Subcommand("operate.up.command", "Watch this machine: client and root in one program."),
    "client": Subcommand("client.command", "Run a client, on a device."),
    "aggregator": Subcommand("aggregator.command", "Run an aggregator, or the root."),
    "page": Subcommand("operate.page.command", "Show a running aggregator in a browser."),
    "nodes": Subcommand("operate.fleet.nodes", "List who reports; forget or quarantine a node."),
    "alarms": Subcommand("operate.fleet.alarms", "List alarms; accept or reject one."),
    "learn": Subcommand("operate.fleet.learn", "Pause or resume what a node learns."),
    "job": Subcommand("operate.fleet.jobs.command", "Compute something of all rows, in rounds."),
    "jobs": Subcommand("operate.fleet.jobs.listing", "List what a fleet computes in rounds."),
    "audit": Subcommand("operate.fleet.audit", "Show who joined, and what was refused or ordered."),
    "token": Subcommand("operate.fleet.tokens", "Make and revoke tokens of operators."),
    "backup": Subcommand(
        "operate.backup.command", "Copy the store of a running root; check a copy."
    ),
    "restore": Subcommand(
        "operate.backup.restore", "Put a copy in place of a stopped root's store."
    ),
    "pki": Subcommand("operate.pki.command", "Make certificates: an authority, and nodes' kits."),
    "kits": Subcommand("operate.pki.kits", "Make kits for all nodes of a list."),
    "doctor": Subcommand("operate.doctor.command", "Find what keeps a program from its work."),
    "fit": Subcommand("files.fit.command", "Learn what is normal from files, with limits."),
    "detect": Subcommand("files.detect.command", "Find alarms in files, by a model."),
    "score": Subcommand("files.score.command", "Score files with a model, a line for each row."),
    "drill": Subcommand("operate.fleet.drill", "Say which faults would raise an alarm."),
    "model": Subcommand("operate.fleet.model", "Show, save and compare what is normal."),
}

EXTRAS = {
    "files": "fit detect score drill model job replay simulate simulate-jobs plan",
    "aggregator,host": "up init",
    "client": "client crowd",
    "pki": "pki kits",
}
"""What is to be installed for subcommands; these and "aggregator" are all but three."""

PACKAGES = {"google": "protobuf", "grpc": "grpcio", "grpc_health": "grpcio-health-checking"}
"""Packages whose modules have other names."""


class LazyGroup(click.Group):
    """Subcommands that load when they are called, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the subcommands, in the order of SUBCOMMANDS."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a subcommand; None for an unknown one."""
        if cmd_name not in SUBCOMMANDS:
            return None
        command = importlib.import_module(f"submerge_{SUBCOMMANDS[cmd_name].module}").command
        return command if isinstance(command, click.Command) else None

    def invoke(self, ctx: click.Context) -> Any:
        """Run a subcommand; say what to install if its packages are not there, or broken."""
        try:
            return super().invoke(ctx)
        except ImportError as error:
            module = (error.name or "submerge").partition(".")[0]
            if module.startswith("submerge"):
                raise
            package = PACKAGES.get(module, module.replace("_", "-"))
            name = str(ctx.invoked_subcommand)
            own = name if name in ("demo", "page") else "aggregator"
            extra = next((e for e, names in EXTRAS.items() if name in names.split()), own)
            raise click.UsageError(
                f"this needs {package}, which is not installed: pip install 'submerge[{extra}]'"
            ) from error

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Refuse an unknown subcommand with the nearest one; click knows none of these names."""
        ctx.invoked_subcommand = args[0]  # its module may lack what it imports
        if args[0] not in SUBCOMMANDS and not ctx.resilient_parsing:
            from difflib import get_close_matches  # late: a client that runs does not need it

            near = get_close_matches(args[0], SUBCOMMANDS, 1)
            if near:
                ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sub.summary) for name, sub in SUBCOMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="submerge", prog_name="submerge")
@click.pass_context
def submerge(context: click.Context) -> None:
    """Streaming PCA for fleets of sensors: each device learns a subspace, and subspaces merge.

    Try `submerge demo`, then `submerge replay FILE` on data of your own.
    """
    # For `init --from`: clients and aggregators do not import what reads histories.
    context.obj = _learnt_settings


def _learnt_settings(history: str) -> LearntSettings:
    """Return what a history settles of a configuration."""
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
    from submerge_files.console.printable import printable

    # It may quote names and files of others.
    click.echo(printable(f"submerge: {' '.join(message.split())}"), err=True)
    sys.exit(2)
