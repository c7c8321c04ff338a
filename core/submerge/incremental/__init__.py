"""Rows in the order of time become a model of them, whenever it is asked for, in bounded memory.

What the faces for scikit-learn, river and PyOD have in common; it imports none of them.
"""
