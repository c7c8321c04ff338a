"""root_config(): the configuration of a root, from its own file or from that of `submerge up`."""

from __future__ import annotations

import os
import tomllib
from contextlib import suppress
from pathlib import Path

from submerge_aggregator.config import AggregatorConfig, load


def root_config(path: Path) -> AggregatorConfig:
    """Return the configuration of a root; raises UsageError for the first mistake, in one line."""
    if not _is_of_one_machine(path):
        return load(path, os.environ)
    from submerge_operate.up import config as box
    from submerge_operate.up import newcomers

    machine = box.load(path, os.environ)
    accepted = newcomers.read(machine.folder / newcomers.ACCEPTED)
    return machine.with_channels(each.channel for each in accepted).aggregator


def _is_of_one_machine(path: Path) -> bool:
    """Return whether a file is for `submerge up`: it reads a sensor, and has no parent."""
    table: dict[str, object] = {}
    # What is wrong with a file is said by what reads it for good.
    with suppress(OSError, ValueError):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
    return "sensor" in table and "parent" not in table
