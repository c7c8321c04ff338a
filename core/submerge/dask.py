"""`submerge.dask`: histories that outgrow one machine, on an analyst's own Dask cluster."""

import typing as _typing

from submerge._faces import face as _face

__all__ = ["detect", "fit", "score"]  # noqa: F822 - by __getattr__


def __getattr__(name: str) -> _typing.Any:
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(_face("dask"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
