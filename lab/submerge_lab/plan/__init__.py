"""`submerge lab plan`: what a fleet of any size would need, from unit costs that were measured.

Bytes are those of messages that are encoded here. Processor time, memory and a broker's share are
unit costs, each with the benchmark that measured it; `--measure` measures those that need no second
program again, where it runs. Prices are the user's. Nothing is started, and no fleet is asked.
"""
