"""Kernel PCA by a fleet (disKPCA), in rounds: points are chosen, then directions in their span.

References
----------
Balcan, Liang, Song, Woodruff, Xie, Communication Efficient Distributed Kernel Principal Component
Analysis, KDD 2016. Sterge, Sriperumbudur, Rosasco, Rudi, Gain with no Pain: Efficient Kernel-PCA by
Nystrom Sampling, AISTATS 2020 (the kind `nystrom`).
"""
