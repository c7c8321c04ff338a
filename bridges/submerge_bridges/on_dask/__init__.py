"""Histories that outgrow one machine: `fit`, `score` and `detect` on an analyst's Dask cluster.

A task depends on nothing but its arguments: one that was lost with its worker is run again, and
gives the same. Who may send to a Dask scheduler runs code on its workers (SECURITY.md).
"""
