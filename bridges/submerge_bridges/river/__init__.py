"""A detector of anomalous rows, and components, as river's estimators. Only it imports river."""

try:
    from submerge_bridges.river.stream_detector import StreamDetector
    from submerge_bridges.river.stream_pca import StreamPCA
except ImportError as error:
    if not (error.name or "").startswith("river"):
        raise
    raise ImportError(
        "submerge.river needs river 0.22 or later: pip install 'submerge[river]'"
    ) from error

__all__ = ["StreamDetector", "StreamPCA"]
