"""`submerge up`: one machine that watches its own sensors, in one program with one configuration.

It is a client and its root, which talk in memory and keep the files that they keep in a fleet.
"""
