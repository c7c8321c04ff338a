"""Kernel methods on rows in one place: Nystrom PCA, one-pass kernel k-means, spectral scores.

The explicit feature maps that a stream uses are in `submerge.features`; the estimators with
scikit-learn's interface are in `submerge.sklearn`.
"""
