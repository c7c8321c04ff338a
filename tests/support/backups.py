"""Copies of a house's store, and the configuration that fits it."""

from __future__ import annotations

import os
from pathlib import Path

from submerge_aggregator.backup import CopyIdentity, make_copy
from submerge_aggregator.config import AggregatorConfig, load
from support.house import OVERSAMPLE, RANK, SCHEMA, House
from support.nodes import GROUP


def configuration(
    folder: Path,
    *,
    node: str = "root",
    more: str = "",
    half_life: str = "",
    robust: bool = False,
) -> Path:
    """Write what a house would be configured with, its store in the same folder."""
    channels = ", ".join(f'{{ name = "{each.name}", unit = "°C" }}' for each in SCHEMA.channels)
    text = f"""
node = "{node}"
store = "{folder}/root.db"
{more}
[listen.grpc]
address = "127.0.0.1:1"
insecure = true
[groups.{GROUP}]
robust = {str(robust).lower()}
[groups.{GROUP}.schema]
channels = [{channels}]
center = "{SCHEMA.center}"
{half_life}
[groups.{GROUP}.summary]
rank = {RANK}
oversample = {OVERSAMPLE}
"""
    path = folder / f"{node}.toml"
    path.write_text(text)
    return path


def config_of(path: Path) -> AggregatorConfig:
    """Read a configuration."""
    return load(path, {})


def copied(house: House, path: Path) -> CopyIdentity:
    """Write a copy of a house's store while it is open."""
    fd, identity = make_copy(house.server.worker, house.time, lambda *_: None)
    path.write_bytes(os.pread(fd, os.fstat(fd).st_size, 0))
    os.close(fd)
    return identity
