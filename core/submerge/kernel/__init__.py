"""Kernel methods on rows in one place: Nystrom PCA, one-pass kernel k-means, spectral scores."""
