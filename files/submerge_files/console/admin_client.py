"""AdminClient: how commands ask a running aggregator, by the socket beside its store or HTTPS."""

from __future__ import annotations

import http.client
import json
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar
from urllib.parse import quote

import click

from submerge.errors import UsageError
from submerge_client.config.plugins import plugin
from submerge_files.console.units import printable
from submerge_files.console.ways import Https, NoAnswer, UnixSocket, Way

if TYPE_CHECKING:
    from rich.console import Console

    from submerge_aggregator.questions.views import ShownRank

Answer = TypeVar("Answer")

WIDE = 160  # columns where the output is no terminal, or for `--wide`: nothing is cut


class AdminClient(NamedTuple):
    """One aggregator that listens to its operators."""

    way: Way

    def get(self, *parts: str, **query: str) -> bytes:
        return self._ask("GET", parts, query)

    def read(self, form: type[Answer], *parts: str, **query: str) -> Answer:
        return value_in(self.get(*parts, **query), form)

    def post(self, *parts: str, **query: str) -> bytes:
        """Change something; return the aggregator's answer."""
        return self._ask("POST", parts, query)

    def send(self, data: bytes, *parts: str, **query: str) -> bytes:
        """Give the aggregator a file; return its answer."""
        return self._ask("POST", parts, query, data)

    def group(self, given: str | None) -> str:
        """Return the group to use: the given one, or the only one."""
        if given is not None:
            return given
        groups = self.groups()
        if len(groups) > 1:
            raise UsageError(f"expected --group, one of {', '.join(groups)}, got none")
        return groups[0]

    def groups(self) -> list[str]:
        return sorted(map(str, json.loads(self.get())["groups"]))

    def shown(self, group: str) -> ShownRank | None:
        """Return how many directions nodes of a group score with; None from an earlier version."""
        from submerge_aggregator.questions.views import ShownRank

        said = json.loads(self.get()).get("shown", {}).get(group)
        return said and ShownRank(**said)

    def knows(self, group: str, node: str) -> bool:
        """Whether there is, or was, such a node in a group."""
        try:
            self.get("nodes", group, node)
        except UsageError:
            return False
        return True

    def _ask(
        self, method: str, parts: tuple[str, ...], query: dict[str, str], body: bytes | None = None
    ) -> bytes:
        target = "/" + "/".join(quote(part, safe="") for part in parts)
        if query:
            target += "?" + "&".join(f"{key}={quote(value)}" for key, value in query.items())
        connection, headers = self.way.connect()
        try:
            connection.request(method, target, body, headers)
            response = connection.getresponse()
            status, answer = response.status, response.read()
        except (OSError, http.client.HTTPException) as error:
            raise self.way.failure(error) from error
        finally:
            connection.close()
        if status < 300:
            return answer
        raise (UsageError if status < 500 else NoAnswer)(_why(status, answer))


class AdminCommand(click.Command):
    """One command that may need a running aggregator."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; print a failure in one line."""
        with _in_one_line():
            return super().invoke(ctx)


class AdminGroup(AdminCommand, click.Group):
    """Commands that may need a running aggregator."""


class ListedFirst(AdminGroup):
    """Commands that run the first one if none is named: `submerge alarms --follow`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` before options that stand alone."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def admin_client_of(
    config: Path | None, store: Path | None, network: Https | None = None, *, instead: str = ""
) -> AdminClient:
    """Return the client that options ask for; `instead`: what else could have been given."""
    given = {"--config": config, "--store": store, "--at": network}
    named = [option for option, value in given.items() if value is not None]
    if len(named) != 1:
        got = {0: "none", 3: "all"}.get(len(named), " and ".join(named))
        raise UsageError(
            f"expected {instead}--config FILE, --store PATH or --at URL of an aggregator, got {got}"
        )
    if network is not None:
        return AdminClient(network)
    from submerge_aggregator.questions.views import socket_of

    if config is not None:
        from submerge_aggregator.config import load

        root_config = plugin("submerge.roots", "up")
        store = (load(config, os.environ) if root_config is None else root_config(config)).store
    return AdminClient(UnixSocket(socket_of(str(store))))


def confirm(warning: str, question: str) -> None:
    """Go on only after a yes."""
    click.echo(warning, err=True)
    if not agrees(question):
        click.echo("nothing has changed", err=True)
        sys.exit(1)


def agrees(question: str) -> bool:
    """Return whether a person says yes; raises UsageError where there is none."""
    try:
        return click.confirm(question, err=True)
    except click.Abort:
        if sys.stdin.isatty():
            raise
        click.echo(err=True)  # the question stands without a line's end
        raise UsageError("expected an answer, got none: add --yes") from None


def value_in(answer: bytes, form: type[Answer]) -> Answer:
    """Return the value that an answer holds; NoAnswer where another version says another."""
    import msgspec

    try:
        return msgspec.json.decode(answer, type=form)
    except msgspec.MsgspecError as error:
        raise NoAnswer(f"it answers what this version cannot read: {error}") from error


def say_back(answer: bytes, done: str = "", *, as_json: bool = True) -> None:
    """Print what was done: words for a person, the aggregator's answer for a program."""
    click.echo(json.dumps(json.loads(answer)) if as_json else done)


def say_value(value: object) -> None:
    import msgspec

    click.echo(msgspec.json.encode(value).decode())


def console_of(*, wide: bool) -> Console:
    """Return a console for tables: as wide as the terminal, or 160 columns."""
    from rich.console import Console

    console = Console()
    return console if console.is_terminal and not wide else Console(width=WIDE)


@contextmanager
def _in_one_line() -> Iterator[None]:
    try:
        yield
    except NoAnswer as error:
        click.echo(f"submerge: {' '.join(str(error).split())}", err=True)
        # Not ctx.exit: the group above is not standalone, and would drop the status.
        sys.exit(1)


def _why(status: int, body: bytes) -> str:
    try:
        return printable(str(json.loads(body)["error"]))
    except (ValueError, KeyError, TypeError):
        said = printable(body[:200].decode(errors="replace"))
        return f"the aggregator answers with status {status}: {said}"
