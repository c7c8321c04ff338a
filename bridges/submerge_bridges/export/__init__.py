"""`submerge model export`: a model as a program that scores rows without Python.

`recipe.py` says what scoring a row needs, as plain arrays; each writer makes one language of it.
"""
