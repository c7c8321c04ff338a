"""`submerge fit`: files of recorded readings become a model with limits, without a fleet. Rows are
learnt by `submerge.history`; nothing here decides.
"""
