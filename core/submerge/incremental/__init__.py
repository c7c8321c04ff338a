"""Rows in the order of time become a model of them, whenever it is asked for, in bounded memory."""
