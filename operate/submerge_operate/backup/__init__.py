"""Backup: `submerge backup` and `submerge backup restore`, copies of a root's store.

A copy is asked of the running aggregator, checked offline, and put in the place of a stopped root's
store. What a copy is, and what makes one good, is in `submerge_aggregator/backup/`.
"""
