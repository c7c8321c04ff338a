"""Histories that outgrow one machine: `fit`, `score` and `detect` on an analyst's Dask cluster.

What runs there, and on which parts of rows, `submerge_files` says; here is what runs it
(`submerge_files.workers.Workers`), and Dask's collections as parts. A task depends on nothing but
its arguments: one that was lost with its worker is run again, and gives the same. What is learnt
is what `submerge.history` learns on one machine.

Who may send to a Dask scheduler runs code on its workers: it is for a cluster of one's own
(SECURITY.md). No client and no aggregator imports this.
"""
