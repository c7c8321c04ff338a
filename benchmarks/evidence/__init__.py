"""What is claimed, from JSON that runs of benchmarks wrote: the page, its picture, README's lines.

`runs.py` names the runs, `every.py` does them, `claims_*.py` pick cells of their tables, and
`page.py` and `pictures.py` make what is read. No figure is typed by hand.
"""
