"""Admission: which node may join, report and watch, by certificate, roster, store and settings.

`decision` decides, as a pure function. `control` asks it for the running aggregator, and keeps the
files that it rests on up to date: the roster and the list of what is revoked.
"""
