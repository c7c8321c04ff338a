"""What a request to the admin API asks for, read and checked."""

from __future__ import annotations

import math

from starlette.requests import Request

from submerge import UsageError
from submerge.protocol.messages import DEEPEST
from submerge.protocol.names import is_name
from submerge_proto.wire import parts


def path_names(request: Request, *keys: str) -> tuple[str, ...]:
    """Return names in the path; raises PeerError if one is no valid name."""
    return tuple(parts.name(request.path_params[key]) for key in keys)


def query_names(request: Request, *keys: str) -> tuple[str | None, ...]:
    """Return names in the query; None for those left out."""
    given = (request.query_params.get(key) for key in keys)
    return tuple(None if each is None else parts.name(each) for each in given)


def flag(request: Request, key: str) -> bool:
    """Return whether a flag in the query is on; raises UsageError if it is neither 0 nor 1."""
    given = request.query_params.get(key, "0")
    if given not in ("0", "1"):
        raise UsageError(f"{key} is 0 or 1, got {given!r}")
    return given == "1"


def whole(request: Request, key: str, default: int) -> int:
    """Return a whole number in the query; raises UsageError if it is none, or below 0."""
    given = request.query_params.get(key)
    if given is None:
        return default
    if not (given.isascii() and given.isdecimal() and len(given) <= 18):
        raise UsageError(f"{key} is a whole number of at least 0, got {given!r}")
    return int(given)


def moment(request: Request, key: str) -> float:
    """Return a time in the query, in Unix seconds; infinite if it is left out."""
    given = request.query_params.get(key, "inf")
    try:
        found = float(given)
    except ValueError:
        found = math.nan
    if math.isnan(found):
        raise UsageError(f"{key} is a time in Unix seconds, got {given!r}")
    return found


def tree_path(request: Request) -> tuple[str, ...]:
    """Return the names of nodes below each other in the query's `path`; none for this one."""
    text = request.query_params.get("path", "")
    path = tuple(text.split("/")) if text else ()
    if len(path) > DEEPEST or not all(map(is_name, path)):
        raise UsageError(f"a path is like site-1/room-2, of {DEEPEST} names at most, got {text!r}")
    return path
