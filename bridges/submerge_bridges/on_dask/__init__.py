"""Histories that outgrow one machine: `fit`, `score` and `detect` on an analyst's Dask cluster.

    driver                          workers
    files -> stretches of rows  ->  times              -> layout of cells
    cells of stretches          ->  rows               -> summaries of cells, keys of chunks
    folds of all cells          ->  rows of a machine  -> scores of rows that were not learnt

A task is a function of bytes (and of the partitions of a Dask collection) that returns bytes in our
own encoding. It depends on nothing else: one that was lost with its worker is run again, and gives
the same. What is learnt is what `submerge.history` learns, span by span as on one machine.

Who may send to a Dask scheduler runs code on its workers: it is for a cluster of one's own
(SECURITY.md). No client and no aggregator imports this.
"""
