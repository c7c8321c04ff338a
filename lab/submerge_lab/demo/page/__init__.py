"""`submerge demo --page`: a demo that goes on, and a page on which its viewer breaks it.

The page is that of every aggregator, beside the demo's root. One view more shows the processes of
the demo, kills, stops and starts them, and accounts for every reading while that happens. Only
this process has that view.
"""
