"""Methods that learn a subspace, side by side on one stream; the command is `compare.py`.

contender    what a method has to have, and how one is found by `module:Class`
streams      rows to learn: files, or spectra that are generated
trial        one method on one stream: error over the optimum, time, memory
trackers     methods of the literature, each from its paper
"""
