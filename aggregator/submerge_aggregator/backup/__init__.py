"""Backup: copies of a root's store, made while it runs, and what tells whether one is good.

A copy is the database as of one commit, and behind it a line that says whose it is, what the
running machine had as its models at that commit, and a digest of it all. Nothing here writes a
store: `submerge backup restore` does.
"""
