"""`submerge.river`: a detector of anomalous rows, and components, as river's estimators."""

import typing as _typing

from submerge._faces import face as _face


def __getattr__(name: str) -> _typing.Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_face("river"), name)
