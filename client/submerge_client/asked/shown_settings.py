"""settings_reply(): the settings of a program, as other machines may read them.

1. A setting is shown by its type, never by its name: numbers, words of a list, paths, and text
   whose type says that it may be shown. All other text is `HIDDEN`, so that a new setting is hidden
   until a type says otherwise.
2. It is the configuration that the program runs with: the file, and what the environment replaces.
3. It fits into a reply: if need be, long lists and texts are cut, and say so.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Annotated, Any, Literal, get_args, get_origin

import msgspec
from msgspec.structs import fields

from submerge import __version__
from submerge.protocol.messages import MOST_BODY
from submerge_client.config.hints import choices
from submerge_client.config.sections import SHOWN, Section

HIDDEN = "(hidden)"

CUTS = (1000, 200, 40, 10, 2)
"""Entries of a list or a table that are shown, and a quarter of the letters of a text: the first
with which it fits."""

Kind = Literal["client", "aggregator"]


class SettingsReply(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a node replies when it is asked for its settings.

    software : Its version.
    settings : By section, as in its file.
    cut : Whether something of it was too long to be sent.
    """

    node: str
    kind: Kind
    software: str
    settings: dict[str, Any]
    cut: bool = False


def settings_reply(node: str, kind: Kind, config: Section) -> bytes:
    """Return a configuration without its secrets, as JSON of at most `MOST_BODY` bytes."""
    settings = shown_settings(config)
    for most in (None, *CUTS):
        reply = SettingsReply(
            node=node,
            kind=kind,
            software=f"submerge/{__version__}",
            settings=settings if most is None else _cut(settings, most),
            cut=most is not None,
        )
        body = msgspec.json.encode(reply)
        if len(body) <= MOST_BODY:
            break
    return body


def shown_settings(config: Section) -> dict[str, Any]:
    """Return a section as plain values, without its secrets."""
    tag = type(config).__struct_config__.tag_field
    kind = {} if tag is None else {tag: type(config).__struct_config__.tag}
    return kind | {
        each.name: _shown(getattr(config, each.name), choices(each.type)) for each in fields(config)
    }


def _shown(value: Any, kinds: Iterable[Any]) -> Any:
    """Return a value as far as the types that it may have allow it."""
    if isinstance(value, Section):
        return shown_settings(value)
    if isinstance(value, tuple):
        inner = [each for kind in kinds if get_origin(kind) is tuple for each in _of(kind, 0)]
        return [_shown(each, inner) for each in value]
    if isinstance(value, dict):
        tables = [kind for kind in kinds if get_origin(kind) is dict]
        keys, values = ([each for kind in tables for each in _of(kind, i)] for i in (0, 1))
        # Two hidden keys are still two entries.
        return {
            key if _shown(key, keys) == key else f"{HIDDEN} {i}": _shown(each, values)
            for i, (key, each) in enumerate(value.items(), 1)
        }
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, str):
        return value if any(_may_be_shown(value, kind) for kind in kinds) else HIDDEN
    return value


def _of(kind: Any, i: int) -> tuple[Any, ...]:
    return choices(get_args(kind)[i])


def _may_be_shown(text: str, kind: Any) -> bool:
    origin = get_origin(kind)
    if origin is Literal:
        return text in get_args(kind)
    return origin is Annotated and any(
        isinstance(each, msgspec.Meta) and each.extra == SHOWN for each in get_args(kind)[1:]
    )


def _cut(value: Any, most: int) -> Any:
    """Return a value whose lists, tables and texts are not long."""
    if isinstance(value, str) and len(value) > 4 * most + 40:
        return f"{value[: 4 * most]}... ({len(value)} letters)"
    if isinstance(value, list):
        rest = [f"... and {len(value) - most} more"] if len(value) > most else []
        return [*(_cut(each, most) for each in value[:most]), *rest]
    if isinstance(value, dict):
        # The sections themselves are few: only tables of any names are long.
        long = len(value) > max(most, 40)
        some = list(value.items())[: most if long else None]
        more = {"...": f"and {len(value) - most} more"} if long else {}
        return {_cut(key, most): _cut(each, most) for key, each in some} | more
    return value
