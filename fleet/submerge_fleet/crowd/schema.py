"""sections(): what a root's configuration has to say of a crowd's group, as TOML."""

from __future__ import annotations

import json

from submerge_fleet.crowd.motes import CHANNELS, OVERSAMPLE, RANK, SCALING, SCHEMA


def sections(group: str) -> str:
    """Return the group's sections, as a person would write them."""
    channels = "".join(
        f"    {{ name = {_quoted(channel.name)}, unit = {_quoted(channel.unit)},"
        f" offset = {offset!r}, scale = {scale!r} }},\n"
        for channel, offset, scale in zip(CHANNELS, SCALING.offset, SCALING.scale, strict=True)
    )
    return (
        "# What `submerge crowd` reads: printed by `submerge crowd schema`.\n"
        f"[groups.{group}.summary]\nrank = {RANK}\noversample = {OVERSAMPLE}\n\n"
        f'[groups.{group}.schema]\ncenter = "{SCHEMA.center}"\nscaling = "fixed"\n'
        f"channels = [\n{channels}]\n"
    )


def _quoted(text: str) -> str:
    """A string as TOML has it: JSON's form, but letters beyond ASCII as they are."""
    return json.dumps(text, ensure_ascii=False)
