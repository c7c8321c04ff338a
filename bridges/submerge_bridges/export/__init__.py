"""`submerge model export`: a model as a program that scores rows without Python. `recipe.py` says
what scoring a row needs, as plain arrays; each writer makes one language of it. Nothing is learnt
here, and nothing is judged in a way of its own.
"""
