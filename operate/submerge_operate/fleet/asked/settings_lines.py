"""setting_lines(): settings of a node as lines, each with its whole name: `uplink.url = "..."`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any


def setting_lines(said: Mapping[str, Any]) -> Iterator[str]:
    """Yield the lines of what a node says of its settings."""
    yield f"# {said['node']}, {said['kind']}, {said['software']}"
    if said["cut"]:
        yield "# long lists and texts are cut"
    yield from _lines(said["settings"], "")


def _lines(value: Any, name: str) -> Iterator[str]:
    if isinstance(value, dict) and value:
        for key, inner in value.items():
            yield from _lines(inner, f"{name}.{key}" if name else str(key))
    elif isinstance(value, list) and any(isinstance(each, dict) for each in value):
        for i, inner in enumerate(value):
            yield from _lines(inner, f"{name}[{i}]")
    elif value is not None:  # a setting that is left out has no value in TOML
        yield f"{name} = {json.dumps(value, ensure_ascii=False)}"
