"""`submerge aggregator page`: the page of a running aggregator, from a process of its own.

It asks through the socket beside the store, and decides by the aggregator's own tokens; so an
aggregator needs no `[page]`, and does nothing for the page but answer.
"""
