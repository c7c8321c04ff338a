"""`submerge.dask`: histories that outgrow one machine, on an analyst's own Dask cluster."""

from submerge._faces import door as _door

__all__ = ["detect", "fit", "score"]  # noqa: F822 - by __getattr__
__getattr__, __dir__ = _door(__name__)
