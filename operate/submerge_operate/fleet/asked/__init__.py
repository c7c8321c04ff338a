"""`submerge nodes settings` and `submerge nodes scores`: one node is asked, wherever it is.

What it says is printed as it came. The aggregator that the command asks has checked it.
"""
