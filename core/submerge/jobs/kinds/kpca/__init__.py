"""Kernel PCA by a fleet (disKPCA), in rounds: points are chosen, then directions in their span.

    job       the kind itself: which round follows which, and what is checked
    settings  what a person sets
    leverage  disLS: leverage scores from merged QR factors of sketched features
    points    points by their keys, the smallest of all; each can be checked from the point itself
    dis_lr    disLR: directions of all rows in the points' span, merged in three ways
    remainder the answer: eigenvalues, and limits on rows that were held out

References
----------
Balcan, Liang, Song, Woodruff, Xie, Communication Efficient Distributed Kernel Principal Component
Analysis, KDD 2016. Sterge, Sriperumbudur, Rosasco, Rudi, Gain with no Pain: Efficient Kernel-PCA by
Nystrom Sampling, AISTATS 2020 (the kind `nystrom`).
"""
