"""root_config(): the configuration of a root, from its own file or from that of `submerge up`."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from submerge.errors import UsageError
from submerge_aggregator.config import AggregatorConfig, load
from submerge_files.console.options import AggregatorOptions

if TYPE_CHECKING:
    from submerge_operate.up.config import BoxConfig

Beside = TypeVar("Beside")


def beside_store(
    at: AggregatorOptions,
    of_store: Callable[[Path], Beside],
    of_config: Callable[[AggregatorConfig], Beside],
) -> Beside:
    """Return what is beside the store of an aggregator, by its configuration or its store."""
    at = at.found
    if (at.config is None) == (at.store is None):
        got = "neither" if at.config is None else "both"
        raise UsageError(f"expected --config FILE or --store PATH of an aggregator, got {got}")
    if at.config is None:
        return of_store(Path(str(at.store)))
    return of_config(root_config(at.config))


def root_config(path: Path) -> AggregatorConfig:
    """Return the configuration of a root; raises UsageError for the first mistake, in one line."""
    return box_config(path).aggregator if _is_of_one_machine(path) else load(path, os.environ)


def box_config(path: Path) -> BoxConfig:
    """Return the configuration of `submerge up`, with the channels that were accepted."""
    from submerge_operate.up import config as box
    from submerge_operate.up import newcomers

    machine = box.load(path, os.environ)
    accepted = newcomers.read(machine.folder / newcomers.ACCEPTED)
    return machine.with_channels(each.channel for each in accepted)


def _is_of_one_machine(path: Path) -> bool:
    """Return whether a file is for `submerge up`: it reads a sensor, and has no parent."""
    table: dict[str, object] = {}
    # What is wrong with a file is said by what reads it for good.
    with suppress(OSError, ValueError):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    return "sensor" in table and "parent" not in table
