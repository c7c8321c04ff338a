"""`submerge replay`: files as a stream, through engines here or into a running fleet. A replay here
is compared with exact PCA of the same rows. It raises no alarms; `submerge score` is for scores of
rows in files.
"""
