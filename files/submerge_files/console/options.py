"""Options that several commands share."""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterable
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple

import click

from submerge.errors import UsageError
from submerge_files.console.admin_client import AdminClient, admin_client_of
from submerge_files.console.ways import https_of

PNG = b"\x89PNG\r\n\x1a\n"


def check_picture(path: Path | None, *, inputs: Iterable[Path] = ()) -> None:
    """Refuse a missing extra, and a place where a picture cannot go, before the work."""
    if path is None:
        return
    import_module("submerge_files.console.figures")  # it says which extra is missing
    # Only a new file or an older PNG may be written: a slip of the finger must not cost anyone the
    # data that they came to look at.
    if path.suffix.lower() != ".png":
        raise UsageError(f"expected a picture's name to end in .png, got {path}: rename it")
    if not os.access(path.parent, os.W_OK):
        raise UsageError(
            f"expected a folder that can be written to, got {path.parent} for {path.name}:"
            " make it, or name another"
        )
    if any(given.exists() and path.exists() and path.samefile(given) for given in inputs):
        raise UsageError(f"{path} is read from, and would be overwritten: name another file")
    if path.exists():
        with path.open("rb") as file:
            if file.read(len(PNG)) not in (PNG, b""):
                raise UsageError(f"{path} exists and is no PNG: name another file, or remove it")


Decorator = Callable[[Any], Any]

FILE = click.Path(path_type=Path, dir_okay=False)
FOLDER = click.Path(path_type=Path, file_okay=False)
FILES = click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE..."
)


HERE = (Path("root.toml"), Path("box.toml"))


def config_here() -> Path | None:
    """Return the configuration in this folder, None without one; UsageError if there are two."""
    found = [path for path in HERE if path.is_file()]
    if len(found) > 1:
        raise UsageError("expected --config FILE: root.toml and box.toml are both here")
    return found[0] if found else None


def _config_or_here(_context: Any, _option: Any, given: Path | None) -> Path:
    if path := given or config_here():
        return path
    raise UsageError("expected --config FILE, got none, and neither root.toml nor box.toml here")


def config_option(text: str) -> Decorator:
    """Return --config, which is the configuration in this folder if it is left out."""
    return click.option("--config", type=FILE, callback=_config_or_here, help=text)


def together(*decorators: Decorator) -> Decorator:
    """Return one decorator that does what these do, in the order of `--help`."""

    def add(command: Any) -> Any:
        for decorator in reversed(decorators):
            command = decorator(command)
        return command

    return add


def default_option(
    name: str, value: Any, text: str | None = None, *dest: str, **more: Any
) -> Decorator:
    """Return an option that shows its default in `--help`."""
    return click.option(name, *dest, default=value, show_default=True, help=text, **more)


def flag_option(name: str, text: str, *dest: str) -> Decorator:
    return click.option(name, *dest, is_flag=True, help=text)


def json_option(text: str = "Print one JSON object.") -> Decorator:
    """Return `--json`, as `as_json`."""
    return flag_option("--json", text, "as_json")


QUIET = flag_option("--quiet", "Show nothing while it runs.")
LOG_JSON = flag_option("--log-json", "Log lines as JSON, one object a line.")
ZERO_IS_MISSING = flag_option("--zero-is-missing", "Read 0 as a gap, as mote files mean it.")
RANK = click.option(
    "--rank", type=click.IntRange(1), help="Directions to score with.  [default: as nodes do]"
)
QUANTITY = default_option(
    "--quantity",
    "temperature",
    "Of an Intel Lab log: temperature, humidity, light, voltage, or all.",
)


def skip_option(text: str) -> Decorator:
    """Return `--skip COLUMN`, which may be repeated."""
    return click.option("--skip", multiple=True, metavar="COLUMN", help=text)


class AggregatorOptions(NamedTuple):
    """Which running aggregator is meant, and which of its groups."""

    config: Path | None
    store: Path | None
    group: str | None
    at: str | None = None
    token_file: Path | None = None
    kit: Path | None = None
    ca: Path | None = None

    @property
    def query(self) -> dict[str, str]:
        """The group, as a query has it."""
        return {} if self.group is None else {"group": self.group}

    def admin(self, *, instead: str = "") -> AdminClient:
        """Return the client for it, as `admin_client_of`."""
        network = None
        if self.at is not None:
            network = https_of(self.at, self.token_file, self.kit, self.ca)
        else:
            for name in ("token_file", "kit", "ca"):
                if getattr(self, name) is not None:
                    raise UsageError(f"{_option(name)} is for --at URL, got no --at")
        return admin_client_of(self.found.config, self.store, network, instead=instead)

    @property
    def found(self) -> AggregatorOptions:
        """These; with the configuration in this folder where they name no aggregator."""
        named = self.config or self.store or self.at
        return self if named else self._replace(config=config_here())

    def refuse(self, other: str) -> None:
        """Refuse these options beside `other`: they would have no effect."""
        for name, value in self._asdict().items():
            if value is not None:
                raise UsageError(
                    f"{_option(name)} is for the model of a running aggregator, got {other} as well"
                )


NETWORK = (
    click.option(
        "--at", "url", metavar="URL", help="Its address for operators: https://root.example:8472."
    ),
    click.option(
        "--token-file",
        type=FILE,
        help="at: a file with a token of `submerge aggregator token new`.",
    ),
    click.option(
        "--kit", type=FILE, help="at: a kit with role operator or reader, in place of a token."
    ),
    click.option("--ca", type=FILE, help="at: authorities to trust.  [default: the kit's]"),
)
"""Options for an aggregator on another machine."""


def aggregator_options(group: str | None, *, network: bool = True) -> Decorator:
    """Return what adds --config, --store, --at and --group, and passes them on as `at`."""
    # Without `network` files beside the store are read: then there is no --at.

    def add(command: Any) -> Any:
        @functools.wraps(command)
        def run(config: Path | None, store: Path | None, **given: Any) -> Any:
            group = given.pop("group", None)
            url = given.pop("url", None)
            rest = {name: given.pop(name, None) for name in ("token_file", "kit", "ca")}
            return command(at=AggregatorOptions(config, store, group, url, **rest), **given)

        return together(
            click.option(
                "--config",
                type=FILE,
                help="The configuration of the running aggregator, or of `submerge up`.  [default:"
                " root.toml or box.toml here]",
            ),
            click.option("--store", type=FILE, help="Its store, instead of its configuration."),
            *(NETWORK if network else ()),
            *(() if group is None else (click.option("--group", help=group),)),
        )(run)

    return add


def _option(name: str) -> str:
    return f"--{name.replace('_', '-')}"
