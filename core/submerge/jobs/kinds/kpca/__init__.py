"""Kernel PCA by a fleet (disKPCA), in rounds: points are chosen, then directions in their span.

Balcan, Liang, Song, Woodruff, Xie, KDD 2016; Sterge et al., AISTATS 2020 (the kind `nystrom`).
"""
