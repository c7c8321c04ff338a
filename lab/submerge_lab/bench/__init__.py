"""`submerge lab bench`: methods that learn a subspace from a stream, side by side.

    contender    what a method has to have, and how one is found by `module:Class`
    streams      rows to learn: files, or spectra that are generated
    trial        one method on one stream: error over the optimum, time, memory
    trackers     methods of the literature, each from its paper

Ours stands beside them as every method does. Numbers of the project itself are in `benchmarks/`.
"""
