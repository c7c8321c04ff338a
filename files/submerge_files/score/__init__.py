"""`submerge score`: files in, a score for each row out, by a model. Rows are prepared and scored by
`submerge.judge`, as in a client. Nothing is learnt here.
"""
