"""`submerge.river`: a detector of anomalous rows, and components, as river's estimators."""

from submerge._faces import door as _door

__all__ = ["StreamDetector", "StreamPCA"]  # noqa: F822 - by __getattr__
__getattr__, __dir__ = _door(__name__)
