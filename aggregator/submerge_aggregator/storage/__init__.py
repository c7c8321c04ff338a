"""The files around the store: the room that it keeps free, and what is wrong with its log.

SQLite writes the database and its log; `store.py` alone talks to it.
"""
