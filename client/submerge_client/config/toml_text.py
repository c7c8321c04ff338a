"""Settings as text: TOML from which the same settings are read, to the last bit."""

from __future__ import annotations

import json

from submerge_client.config.schemas import ChannelConfig, SchemaConfig


def quoted(text: str) -> str:
    """Return a text as TOML writes it, in one line; characters beyond ASCII stay as they are."""
    # JSON's form, but for DEL, which TOML has no place for as it is.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007F")


def schema_lines(schema: SchemaConfig) -> str:
    """Return the settings of a section `[schema]`, without features. Defaults are left out."""
    lines = [f"center = {quoted(schema.center)}", f"scaling = {quoted(schema.scaling)}"]
    if schema.lags > 1:
        lines.append(f"lags = {schema.lags}")
    if schema.half_life_s is not None:
        lines.append(f"half_life_s = {schema.half_life_s!r}")
    lines += [
        "channels = [",
        *(f"    {channel_table(channel)}," for channel in schema.tables),
        "]\n",
    ]
    return "\n".join(lines)


def channel_table(channel: ChannelConfig) -> str:
    """Return a channel as a table: as "name [unit]" some names would be read in another way."""
    parts = [f"name = {quoted(channel.name)}"]
    if channel.unit:
        parts.append(f"unit = {quoted(channel.unit)}")
    if channel.offset is not None and channel.scale is not None:
        # The shortest digits that are read as the same number.
        parts += [f"offset = {float(channel.offset)!r}", f"scale = {float(channel.scale)!r}"]
    return f"{{ {', '.join(parts)} }}"
