"""`submerge.river`: a detector of anomalous rows, and components, as river's estimators."""

import typing as _typing

from submerge._faces import face as _face

__all__ = ["StreamDetector", "StreamPCA"]  # noqa: F822 - by __getattr__


def __getattr__(name: str) -> _typing.Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_face("river"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
