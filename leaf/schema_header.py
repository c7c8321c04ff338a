"""Write a schema as the C header that a leaf is compiled with.

python schema_header.py edge.toml > schema.h     # of a client's configuration
python schema_header.py model.bin > schema.h     # of a model as the fleet's broker retains it
python schema_header.py schema.json > schema.h   # of a canonical text
"""

from __future__ import annotations

import sys
from pathlib import Path

from submerge import Schema

CENTERS = {"fleet": "SUBMERGE_LEAF_FLEET", "own": "SUBMERGE_LEAF_OWN", "none": "SUBMERGE_LEAF_NONE"}


def label(name: str) -> bytes:
    """Return a channel's name as alarms have it: 40 letters, 100 bytes."""
    return name[:40].encode()[:100].decode(errors="ignore").encode()


def c_string(data: bytes) -> str:
    """Return bytes as a string of C; all but letters, digits and plain signs as octal escapes."""
    plain = frozenset(
        b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.,:/()[]{}"
    )
    return '"' + "".join(chr(each) if each in plain else f"\\{each:03o}" for each in data) + '"'


def schema_in(path: Path) -> Schema:
    """Return the schema that a file holds."""
    if path.suffix == ".toml":
        from submerge_client.config.client_config import load

        section = load(path, {}).schema
        if section.learns_scaling or section.lags > 1:
            raise SystemExit(
                "a leaf has no lags, and its scale is known: give a model of the fleet"
            )
        return section.built
    data = path.read_bytes()
    if data.startswith(b"\x12"):
        from submerge_proto.wire import codec

        data = getattr(codec.decode("watch", data), "schema", b"")
    return Schema.parse(data.strip())


def header(schema: Schema) -> str:
    """Return the header of a schema; UsageError if a leaf cannot have it."""
    if not schema.linear:
        raise SystemExit("a leaf has no kernel: expected a schema without features")
    width, scaling = schema.width, schema.scaling
    text = schema.canonical
    # Strings one after the other are one: C99 promises room for 4,095 letters in a line.
    pieces = "\n    ".join(c_string(text[i : i + 80]) for i in range(0, len(text), 80))
    offset = [0.0] * width if scaling is None else scaling.offset
    scale = [1.0] * width if scaling is None else scaling.scale
    fingerprint = ", ".join(f"0x{each:02x}" for each in bytes.fromhex(schema.fingerprint))
    return "\n".join(
        (
            "/* Written by schema_header.py. */",
            f"static const uint8_t schema_fingerprint[32] = {{{fingerprint}}};",
            f"static const char *const schema_channels[{width}] = {{",
            *(f"    {c_string(label(name))}," for name in schema.names),
            "};",
            f"static const double schema_offset[{width}] = {{{', '.join(map(repr, offset))}}};",
            f"static const double schema_scale[{width}] = {{{', '.join(map(repr, scale))}}};",
            f"static const char schema_text[] = {pieces};",
            "static const submerge_leaf_schema schema = {",
            f"    {width}, {CENTERS[schema.center]}, {schema.half_life or 0.0!r}, schema_text,",
            "    schema_fingerprint, schema_channels, schema_offset, schema_scale};",
            "",
        )
    )


if __name__ == "__main__":
    sys.stdout.write(header(schema_in(Path(sys.argv[1]))))
