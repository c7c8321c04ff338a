"""`submerge lab simulate`: runs many seeds of a simulated fleet, and reports what went wrong. The
simulator itself is `submerge_lab.simulator`. Here are only the options, the processes that share
the seeds, and the table.
"""
