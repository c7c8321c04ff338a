"""`submerge aggregator token`: with tokens operators reach it over the network, or its page."""

from __future__ import annotations

import fcntl
import json
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from submerge.errors import UsageError
from submerge_aggregator.operators.scopes import SCOPES
from submerge_files.console.admin_client import AdminCommand, AdminGroup
from submerge_files.console.options import FILE, AggregatorOptions, aggregator_options, json_option
from submerge_files.console.units import moment
from submerge_operate.pki.issued import span

if TYPE_CHECKING:
    from submerge_aggregator.config import AggregatorConfig
    from submerge_aggregator.operators.tokens import Token

PRIVATE = 0o600

AT = aggregator_options(None, network=False)


@click.group(
    cls=AdminGroup,
    epilog="Example: submerge aggregator token new night-shift --scope judge --config root.toml",
)
def command() -> None:
    """Make and revoke tokens of operators, for commands with --at and for the page.

    They are kept as hashes, beside the aggregator's store or in `[operators] tokens`. A running
    aggregator takes changes over within a second. Run this as the aggregator's user, or as root.
    """


@command.command(
    cls=AdminCommand,
    epilog="Example: submerge aggregator token new night-shift --scope judge --lasts 90d"
    " --config root.toml",
)
@click.argument("name")
@click.option(
    "--scope",
    required=True,
    type=click.Choice(SCOPES),
    help="read: look; judge: also accept and reject alarms; operate: everything.",
)
@click.option(
    "--lasts", metavar="DURATION", type=span, help="How long: 12h, 90d, 1y.  [default: no end]"
)
@click.option(
    "--group",
    "groups",
    multiple=True,
    metavar="GROUP",
    help="It is for this group only; several times for several.  [default: all]",
)
@click.option("--to", type=FILE, help="A new file for the token.  [default: NAME.token]")
@AT
@json_option("Print what was made, without the token, as JSON.")
def new(
    at: AggregatorOptions,
    name: str,
    scope: str,
    lasts: timedelta | None,
    groups: tuple[str, ...],
    to: Path | None,
    as_json: bool,
) -> None:
    """Make a token, and write it to a file that only its owner may read.

    It is written once, and shown nowhere. Commands take the file as --token-file.
    """
    from submerge_aggregator.operators import tokens

    tokens.check_token_name(name)
    limits = tokens.check_groups(groups)
    to = Path(f"{name}.token") if to is None else to
    now = float(int(time.time()))
    until = None if lasts is None else now + lasts.total_seconds()
    secret = tokens.new_secret()
    named = next(each for each in SCOPES if each == scope)
    token = tokens.Token(name, named, now, until, tokens.digest_of(secret), limits)
    with ExitStack() as undo:
        with _changing(_path_of(at)) as known:
            if any(each.name == name for each in known):
                raise UsageError(f"there is a token {name}: revoke it first, or take another name")
            if len(known) >= tokens.MOST:
                raise UsageError(f"there are {tokens.MOST} tokens: revoke some first")
            _write_secret(to, secret)
            undo.callback(to.unlink, missing_ok=True)
            known.append(token)
        undo.pop_all()  # it is kept
    if as_json:
        click.echo(json.dumps(_facts(token, now) | {"file": str(to)}))
    else:
        click.echo(f"{to}: token {name}, scope {token.words}, {_end(token, now)}")


@command.command("list", epilog="Example: submerge aggregator token list --config root.toml")
@AT
@json_option("Print one JSON array.")
def list_tokens(at: AggregatorOptions, as_json: bool) -> None:
    """List tokens: name, scope, when they were made and when they end."""
    known, now = _read(_path_of(at)), time.time()
    if as_json:
        click.echo(json.dumps([_facts(each, now) for each in known]))
        return
    width = max((len(each.name) for each in known), default=0)
    for each in known:
        created = f"made {moment(each.created)}"
        limits = f", for {', '.join(each.groups)} alone" if each.groups else ""
        click.echo(f"{each.name:<{width}}  {each.scope:<7}  {created}, {_end(each, now)}{limits}")
    if not known:
        click.echo("no tokens")


@command.command(epilog="Example: submerge aggregator token revoke night-shift --config root.toml")
@click.argument("name")
@AT
@json_option("Print what was revoked, as JSON.")
def revoke(at: AggregatorOptions, name: str, as_json: bool) -> None:
    """Revoke a token: from the next second on it is not accepted."""
    with _changing(_path_of(at)) as known:
        found = next((each for each in known if each.name == name), None)
        if found is None:
            names = ", ".join(each.name for each in known) or "none"
            raise UsageError(f"expected one of the tokens that there are, {names}, got {name[:80]}")
        known.remove(found)
    if as_json:
        click.echo(json.dumps(_facts(found, time.time())))
    else:
        click.echo(f"token {name} is revoked")


# -- inside ----------------------------------------------------------------------------


def _path_of(at: AggregatorOptions) -> Path:
    from submerge_aggregator.operators.config import tokens_path
    from submerge_operate.root_config import beside_store

    def of_config(config: AggregatorConfig) -> Path:
        if config.operators is None and config.page is None:
            only = "only `submerge aggregator page` takes its tokens"
            click.echo(f"note: {at.config} has neither [operators] nor [page]: {only}", err=True)
        return tokens_path(config.operators, config.store)

    return beside_store(at, lambda store: tokens_path(None, store), of_config)


def _read(path: Path) -> Sequence[Token]:
    from submerge_aggregator.operators.tokens import parse_tokens

    try:
        return parse_tokens(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return ()
    except PermissionError as error:
        raise UsageError(
            f"{path} is its owner's alone: run this as the aggregator's user"
        ) from error
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"expected tokens in {path}, got: {error}") from error
    except UsageError as error:
        raise UsageError(f"{path}: {error}") from error


@contextmanager
def _changing(path: Path) -> Iterator[list[Token]]:
    """Have the body change the tokens of a file, which is replaced as a whole."""
    from submerge_aggregator.operators.tokens import tokens_text
    from submerge_client.files import atomic_file

    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as error:
        raise UsageError(f"expected the folder of {path}, got: {error.strerror}") from error
    try:
        # One command at a time: of two that read the same file one would be lost.
        fcntl.flock(folder, fcntl.LOCK_EX)
        known = list(_read(path))
        yield known
        with atomic_file(path, mode=PRIVATE) as file:
            owner = os.fstat(folder)
            if os.geteuid() == 0:
                # Root makes it for the user that the aggregator runs as.
                os.fchown(file.fileno(), owner.st_uid, owner.st_gid)
            file.write(tokens_text(known).encode())
    except OSError as error:
        raise UsageError(f"cannot change {path}: {error.strerror}") from error
    finally:
        os.close(folder)


def _write_secret(path: Path, secret: str) -> None:
    """Write a token to a new file; an existing one stays as it is."""
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(path, flags, PRIVATE), "w", encoding="ascii") as file:
            file.write(f"{secret}\n")
    except FileExistsError as error:
        raise UsageError(f"{path} exists: name another file with --to") from error
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}") from error


def _facts(token: Token, now: float) -> dict[str, Any]:
    """Return a token for JSON, without its hash."""
    from submerge_aggregator.operators.tokens import time_text

    return {
        "name": token.name,
        "scope": token.scope,
        "groups": list(token.groups),
        "created": time_text(token.created),
        "until": None if token.until is None else time_text(token.until),
        "ended": token.has_ended(now),
    }


def _end(token: Token, now: float) -> str:
    if token.until is None:
        return "without an end"
    return f"{'ended' if token.has_ended(now) else 'until'} {moment(token.until)}"
