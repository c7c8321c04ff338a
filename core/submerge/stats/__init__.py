"""Statistics of a node's readings and scores, apart from the subspace.

There are quantile sketches, block maxima, moments, samples, and statistics of single channels.
Each merges or updates exactly and in bounded memory. Nothing here decides anything:
`submerge.client` chooses limits and raises alarms.
"""
