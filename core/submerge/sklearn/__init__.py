"""The engine, a detector, and the other methods of the papers, as scikit-learn estimators.

This is the only folder of the core that imports scikit-learn. It adds no mathematics of its own.
"""

try:
    from submerge.sklearn.nystrom_kpca import NystromKPCA
    from submerge.sklearn.one_pass_kmeans import OnePassKernelKMeans
    from submerge.sklearn.spectral_clustering import KernelSpectralClustering
    from submerge.sklearn.streaming_pca import StreamingPCA
    from submerge.sklearn.subspace_detector import SubspaceDetector
except ImportError as error:
    # Missing, or older: either way its name is on the error. Others are not for us to explain.
    if not (error.name or "").startswith("sklearn"):
        raise
    raise ImportError(
        "submerge.sklearn needs scikit-learn 1.6 or later: pip install 'submerge[sklearn]'"
    ) from error

__all__ = [
    "KernelSpectralClustering",
    "NystromKPCA",
    "OnePassKernelKMeans",
    "StreamingPCA",
    "SubspaceDetector",
]
