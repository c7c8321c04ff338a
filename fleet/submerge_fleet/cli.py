"""The `submerge` command.

This file imports click only; a subcommand's module loads when it is called, so that
`submerge --help` answers at once on a Pi. Exit status: 0 done, 1 failed, 2 bad input
(one line on stderr: what was expected, what came, what to do).
"""

from __future__ import annotations

import errno
import importlib
import os
import sys
from typing import NamedTuple

import click


class Subcommand(NamedTuple):
    """Where a subcommand lives (its module calls it `command`), and what it does."""

    module: str
    summary: str


SUBCOMMANDS = {
    "demo": Subcommand("submerge_fleet.demo.command", "Show the whole system on a generated room."),
    "replay": Subcommand("submerge_fleet.replay.command", "Stream files as if they came in live."),
    "crowd": Subcommand(
        "submerge_fleet.crowd.command", "Run simulated nodes, each a client of its own."
    ),
    "simulate": Subcommand(
        "submerge_fleet.simulate.command", "Run a fleet in virtual time, with faults."
    ),
    "client": Subcommand("submerge_client.command", "Run a client, at the edge."),
    "aggregator": Subcommand("submerge_aggregator.command", "Run an aggregator, or the root."),
    "nodes": Subcommand(
        "submerge_fleet.operate.nodes", "See who reports; forget or quarantine a node."
    ),
    "alarms": Subcommand(
        "submerge_fleet.operate.alarms", "See what is wrong; accept or reject an alarm."
    ),
    "learn": Subcommand(
        "submerge_fleet.operate.learn", "Have a node learn nothing, or learn again."
    ),
    "pki": Subcommand(
        "submerge_fleet.pki.command", "Make certificates: an authority, and nodes' kits."
    ),
    "kits": Subcommand("submerge_fleet.pki.kits", "Make kits for all nodes of a list."),
    "doctor": Subcommand(
        "submerge_fleet.doctor.command", "Say what keeps a program from its work."
    ),
    "score": Subcommand(
        "submerge_fleet.score.command", "Score files by a model, a line for each row."
    ),
    "model": Subcommand("submerge_fleet.operate.model", "Show, save and compare what is normal."),
}


class LazyGroup(click.Group):
    """Subcommands that load when they are called, not when they are listed."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the subcommands, in the order of SUBCOMMANDS."""
        return list(SUBCOMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a subcommand, or None for an unknown one."""
        if cmd_name not in SUBCOMMANDS:
            return None
        command = importlib.import_module(SUBCOMMANDS[cmd_name].module).command
        return command if isinstance(command, click.Command) else None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List the subcommands without loading them."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, sub.summary) for name, sub in SUBCOMMANDS.items()])


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(package_name="submerge", prog_name="submerge")
def submerge() -> None:
    """Streaming PCA for fleets of sensors: each device learns a subspace, and subspaces merge.

    Try `submerge demo`, then `submerge replay FILE` on data of your own.
    """


def main() -> None:
    """Run the command; say in one line what was wrong with its input."""
    # Before NumPy loads: our matrices are small, and threads that wait for one another
    # make each step many times slower where cores are shared.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    # gRPC would write lines of its own into the log for each handshake that comes to nothing:
    # whoever scans a port would fill it.
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
        # The reader has what it wanted; Python must not complain at exit either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        if error.errno != errno.ENOSPC:
            raise
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        click.echo("submerge: expected room to write, the disk is full: free some", err=True)
        sys.exit(1)
    except Exception as error:
        from submerge.errors import SubmergeError

        if not isinstance(error, SubmergeError):
            raise
        _refuse(str(error))


def _refuse(message: str) -> None:
    click.echo(f"submerge: {' '.join(message.split())}", err=True)
    sys.exit(2)
