"""What a node counts and remembers of its readings and scores, beside the subspace.

Sketches, block maxima, moments, samples, and statistics of a single channel. Each merges or
updates exactly and in bounded memory. Nothing here decides anything: limits are chosen and
alarms raised in `submerge.client`.
"""
