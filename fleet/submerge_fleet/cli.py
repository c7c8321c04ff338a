"""The `submerge` command.

This file imports click only; a subcommand's module loads when it is called, so that
`submerge --help` answers at once on a Pi. Exit status: 0 done, 1 failed, 2 bad input
(one line on stderr: what was expected, what came, what to do).
"""

from __future__ import annotations

import importlib
import sys

import click

from submerge import SubmergeError, __version__

COMMANDS = {
    "demo": "submerge_fleet.demo",
    "replay": "submerge_fleet.replay",
}


class LazyGroup(click.Group):
    """Subcommands by module; each module calls its own `command`."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Name the subcommands, in the order of COMMANDS."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a subcommand, or None for an unknown one."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(COMMANDS[cmd_name]).command
        return command if isinstance(command, click.Command) else None


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="submerge")
def submerge() -> None:
    """Streaming PCA for fleets of sensors: each device learns a subspace, and subspaces merge.

    Try `submerge demo`, then `submerge replay FILE` on data of your own.
    """


def main() -> None:
    """Run the command; say in one line what was wrong with its input."""
    try:
        sys.exit(submerge.main(standalone_mode=False))
    except click.exceptions.Abort:
        sys.exit(130)
    except click.UsageError as error:
        hint = f" (see {error.ctx.command_path} --help)" if error.ctx else ""
        _refuse(error.format_message() + hint)
    except (SubmergeError, click.ClickException) as error:
        _refuse(error.format_message() if isinstance(error, click.ClickException) else str(error))
    except BrokenPipeError:
        # The reader has what it wanted; a traceback would say otherwise.
        sys.stderr.close()
        sys.exit(0)


def _refuse(message: str) -> None:
    click.echo(f"submerge: {' '.join(message.split())}", err=True)
    sys.exit(2)
