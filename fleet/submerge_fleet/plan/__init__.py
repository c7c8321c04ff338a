"""`submerge plan`: what a fleet of any size would need, from unit costs that were measured.

Bytes are those of messages that are encoded here. Processor time, memory and a broker's share are
unit costs, each with the benchmark that measured it; `--measure` measures anew, on this machine,
those that need no second program. Prices are the user's. Nothing is started, and no fleet is asked.
"""
