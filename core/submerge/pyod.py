"""`submerge.pyod`: a detector of anomalous rows as PyOD's detectors are."""

from submerge._faces import door as _door

__all__ = ["SubspaceOD"]  # noqa: F822 - by __getattr__
__getattr__, __dir__ = _door(__name__)
