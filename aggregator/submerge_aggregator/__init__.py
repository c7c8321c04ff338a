"""The program that merges: rows in a store, a model out."""
