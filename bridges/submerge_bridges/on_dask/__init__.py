"""Histories that outgrow one machine: `fit`, `score` and `detect` on an analyst's Dask cluster.

    driver                          workers
    files -> stretches of rows  ->  times              -> layout of cells
    some stretches              ->  rows               -> summaries of cells, keys of chunks
    folds of all cells          ->  rows of a machine  -> scores of rows that were not learnt

A task is a function of values (and of the partitions of a Dask collection). It depends on nothing
else: one that was lost with its worker is run again, and gives the same. Which rows a task reads
does not depend on the workers. What is learnt is what `submerge.history` learns on one machine.

Who may send to a Dask scheduler runs code on its workers: it is for a cluster of one's own
(SECURITY.md). No client and no aggregator imports this.
"""
