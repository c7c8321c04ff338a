"""Admission: which node may join, report and watch, by certificate, roster, store and settings.

`control` decides, by the pure function `objection`, for the running aggregator, and keeps the files
that it rests on up to date: the roster and the list of what is revoked.
"""
