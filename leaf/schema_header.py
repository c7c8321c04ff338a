"""Write a schema as the C header that a leaf is compiled with.

    python schema_header.py schema.json > schema.h

The file holds the canonical text of the schema that the fleet uses, with its scaling.
"""

from __future__ import annotations

import sys
from pathlib import Path

from submerge import Schema

CENTERS = {"fleet": "SUBMERGE_LEAF_FLEET", "own": "SUBMERGE_LEAF_OWN", "none": "SUBMERGE_LEAF_NONE"}


def c_string(data: bytes) -> str:
    """Return bytes as a string of C; all but letters, digits and plain signs as octal escapes."""
    plain = frozenset(
        b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.,:/()[]{}"
    )
    return '"' + "".join(chr(each) if each in plain else f"\\{each:03o}" for each in data) + '"'


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
            *(f"    {c_string(name.encode())}," for name in schema.names),
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
    sys.stdout.write(header(Schema.parse(Path(sys.argv[1]).read_bytes().strip())))
