"""`submerge up`: one machine that watches its own sensors, in one program with one configuration.
It is a client and its root, which talk in memory and keep the files that they keep in a fleet, so
that other machines may join. It has no code for either: it only puts both together.
"""
