"""Queries: what a request to the operator's door asks for, read and checked."""

from __future__ import annotations

from starlette.requests import Request

from submerge import UsageError
from submerge_proto.wire import parts


def named(request: Request, *keys: str) -> tuple[str, ...]:
    """Return names in the path.

    Raises
    ------
    PeerError
        If one is none.
    """
    return tuple(parts.name(request.path_params[key]) for key in keys)


def params(request: Request, *keys: str) -> tuple[str | None, ...]:
    """Return names in the query; None for what is left out.

    Raises
    ------
    PeerError
        If one is none.
    """
    given = (request.query_params.get(key) for key in keys)
    return tuple(None if each is None else parts.name(each) for each in given)


def flag(request: Request, key: str) -> bool:
    """Return whether something in the query is on.

    Raises
    ------
    UsageError
        If it is neither on nor off.
    """
    given = request.query_params.get(key, "0")
    if given not in ("0", "1"):
        raise UsageError(f"{key} is 0 or 1, got {given!r}")
    return given == "1"
