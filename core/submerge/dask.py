"""`submerge.dask`: histories that outgrow one machine, on an analyst's own Dask cluster.

This is a door (docs/decisions/0042): `fit`, `score` and `detect` stand in a package that imports
this one, and are imported when they are used. They need the extra `dask`. Nothing here imports
Dask, and no module of this package may use it.
"""

import typing as _typing

__all__ = ["detect", "fit", "score"]

if _typing.TYPE_CHECKING:
    detect: _typing.Any
    fit: _typing.Any
    score: _typing.Any
else:

    def __getattr__(name: str) -> _typing.Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module("submerge_bridges.on_dask.python"), name)


def __dir__() -> list[str]:
    return [*globals(), *__all__]
