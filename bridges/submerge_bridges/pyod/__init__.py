"""A detector of anomalous rows as PyOD's detectors are. Only this folder imports PyOD."""

try:
    from submerge_bridges.pyod.subspace_od import SubspaceOD
except ImportError as error:
    if not (error.name or "").startswith(("pyod", "sklearn")):
        raise
    raise ImportError(
        "submerge.pyod needs PyOD 2.0.6 or later: pip install 'submerge[pyod]'"
    ) from error

__all__ = ["SubspaceOD"]
