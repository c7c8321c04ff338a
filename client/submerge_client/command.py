"""`submerge client`: the program at the edge."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from submerge_client.agent import Agent
    from submerge_client.config.from_history import LearntSettings

FROM_HISTORY = click.option(
    "--from",
    "history",
    metavar="FILE",
    help="Print a short one instead, with what recorded readings settle: channels, units, scaling,"
    " rank. FILE has them, or is a folder or pattern, or a model of `submerge fit`.",
)


def _input_kind(context: click.Context, option: click.Parameter, given: str | None) -> str | None:
    if given is None:
        return None
    # Late: without the option a program that only prints its help needs none of it.
    from submerge_client.config.sections import sections_of
    from submerge_client.config.sensors import AnySensor

    _, kinds = sections_of(AnySensor)
    reading = [name for name, kind in kinds.items() if getattr(kind, "reads_input", False)]
    return click.Choice(reading).convert(given, option, context)


@click.group(
    invoke_without_command=True,
    epilog="Example: submerge client init > client.toml, then submerge client --config client.toml",
)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    help="The node's settings, as TOML. SUBMERGE__SECTION__KEY in the environment overrides one.",
)
@click.option(
    "--format",
    "form",
    metavar="[ndjson|influx]",
    callback=_input_kind,
    help="How standard input is read, in place of `kind` in [sensor]: lines of JSON, or metrics of"
    " Telegraf.",
)
@click.option(
    "--test",
    "trial",
    is_flag=True,
    help="Read the sensors for ten seconds, show what would be learnt, send nothing.",
)
@click.option("--log-json", is_flag=True, help="Log lines as JSON, one object a line.")
@click.pass_context
def command(
    context: click.Context, path: Path | None, form: str | None, trial: bool, log_json: bool
) -> None:
    """Run a client: read sensors and report to a parent, until it is stopped.

    On SIGTERM or Ctrl-C it reports and keeps all readings, and ends with status 0. Scores
    go to standard output or to a broker if the configuration says so, log lines to standard error.
    With `--format influx` it is a processor of Telegraf, or with `mode = "output"` an output.
    """
    if context.invoked_subcommand is not None:
        return
    if path is None:
        raise click.UsageError("expected --config FILE; submerge client init prints a sample")
    # Late: `init` needs none of it.
    from submerge_client import memory
    from submerge_client.memory import deferred

    memory.limit(arenas=1)
    with deferred():
        agent = _agent(path, form, trial=trial, log_json=log_json)
    if agent is None:
        return
    memory.trim()
    for number, act in signal_actions(agent.stop).items():
        signal.signal(number, lambda *_, act=act: act())
    sys.exit(agent.run())


@command.command(
    epilog="""\b
Example: submerge client init > client.toml
         submerge client init --from plant.model > client.toml"""
)
@FROM_HISTORY
@click.pass_obj
def init(learnt: Callable[[str], LearntSettings], history: str | None) -> None:
    """Print a sample configuration with every setting and the effect of raising it."""
    if history is not None:
        # Who reads histories stands above, and comes with the command's root.
        settings = learnt(history)
        from submerge_client.config.from_history import client_text

        click.echo(client_text(settings), nl=False)
        return
    from submerge_client.config.client_config import ClientConfig
    from submerge_client.config.sample import sample

    click.echo(sample(ClientConfig), nl=False)


def signal_actions(end: Callable[[], object]) -> dict[signal.Signals, Callable[[], object]]:
    """Return what each signal does to a program that goes on until `end`."""
    # SIGHUP ends one that has a controlling terminal, which was closed then. One without is a
    # service: it reads lists and certificates again. An ignored SIGHUP stays so (`nohup`).
    actions = dict.fromkeys((signal.SIGTERM, signal.SIGINT, signal.SIGQUIT), end)
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        actions[signal.SIGHUP] = end if _has_terminal() else _read_again
    return actions


def _has_terminal() -> bool:
    with suppress(OSError):
        os.close(os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY))
        return True
    return False


def _read_again() -> None:
    from submerge_client.files import FileLooks
    from submerge_client.logs import say

    FileLooks.asked += 1
    say("lists and certificates are read again at their next use", signal="SIGHUP")


def _agent(path: Path, form: str | None, *, trial: bool, log_json: bool) -> Agent | None:
    """Return the agent that a file describes; None if it was only tried out."""
    from submerge_client import logs
    from submerge_client.config.client_config import load

    logs.begin("warning", as_json=log_json)  # for warnings about the configuration
    kind = {} if form is None else {"SUBMERGE__SENSOR__KIND": form}
    config = load(path, os.environ | kind)
    logs.begin(config.log, as_json=log_json)
    if trial:
        from submerge_client.trial import try_out

        try_out(config)
        return None
    from submerge_client.assembly import build_agent

    return build_agent(config)
