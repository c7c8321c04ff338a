"""Histories: rows that were recorded before there was a fleet, learnt in two passes.

    pass 1   rows -> `Chunk`s -> summaries of spans of time (folds)
    pass 2   rows of each fold, judged by a model of the other folds -> limits

What comes out is `Learnt`. Rows are judged by the client's own monitor; no file is read here.
"""
