"""`submerge up`: one machine watches its own sensors."""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

    from submerge_operate.up.config import BoxConfig

DEFAULT = Path("box.toml")


@click.command(
    epilog="""\b
Example: submerge up
         submerge up --install"""
)
@click.option(
    "--config",
    "path",
    type=click.Path(path_type=Path, dir_okay=False),
    default=DEFAULT,
    show_default=True,
    help="Its settings, as TOML. SUBMERGE__SECTION__KEY in the environment overrides one.",
)
@click.option("--json", "as_json", is_flag=True, help="Each line as one object of JSON.")
@click.option("--install", "order", flag_value="install", help="Have systemd start it at boot.")
@click.option("--uninstall", "order", flag_value="uninstall", help="Undo that; the data stay.")
@click.option(
    "--accept",
    "accepted",
    multiple=True,
    metavar="NAME",
    help="Learn a new field from now on, device/field; * and ? stand for any text.",
)
@click.option("--log-json", is_flag=True, help="Log lines as JSON, one object a line.")
def command(
    path: Path, as_json: bool, order: str | None, accepted: tuple[str, ...], log_json: bool
) -> None:
    """Watch this machine's sensors: learn what is normal, and raise alarms, in one program.

    It is a client and its root in one process. Their files are those of a fleet, so that other
    machines may join later. A line a minute says how it is. SIGTERM and Ctrl-C keep all
    readings, and end with status 0.

    --install writes a unit for systemd, of the user or, for root, of the system.
    """
    from submerge_client import logs, memory

    memory.limit(arenas=2)
    logs.begin("warning", as_json=log_json)  # for warnings about the configuration
    if order is not None:
        sys.exit(_order(order, path))
    config = _load(path, os.environ)
    if accepted:
        from submerge_operate.up.newcomers import accept

        accept(config, accepted, click.echo)
        return
    logs.begin(config.log, as_json=log_json)
    from submerge_operate.up.box import run

    def tell(line: str) -> None:
        with suppress(OSError):  # a terminal that was closed costs lines, and no reading
            click.echo(line)

    sys.exit(run(config, tell, as_json=as_json))


def _order(order: str, path: Path) -> int:
    from submerge_operate.up.install import UnitFolder, install, uninstall

    config = _load(path, {})  # a unit has no variables of this shell
    place = UnitFolder.of_this_process(os.environ)
    act = install if order == "install" else uninstall
    return act(config, path, place, click.echo)


def _load(path: Path, environ: Mapping[str, str]) -> BoxConfig:
    """Return the configuration; a root's packages are needed for it, too."""
    from submerge import UsageError

    if path == DEFAULT and not path.exists():
        raise UsageError("no box.toml here: submerge init writes one")
    from submerge_client.memory import UNUSED, deferred

    with deferred(UNUSED - {"asyncio"}):
        from submerge_operate.up import box  # noqa: F401 - what is missing is said first
        from submerge_operate.up.config import load
    return load(path, environ)
