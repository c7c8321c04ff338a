"""Streaming PCA, linear algebra alone: `Subspace`, `merge`, the engine `SAPCA`, and scores.

`subspace` is the value, `merging` joins several, `sapca` learns one from rows (`block`,
`low_rank`, `scatter`, `budget`, `rank` and `projections` are its parts), `tree` keeps the merge
of many, `score`, `missing` and `reconstruct` compare a row with a subspace, `serial` writes an
engine as bytes.
Nothing here knows nodes, messages, limits or alarms.
"""
