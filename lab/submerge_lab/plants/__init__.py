"""The generated sensor room that `submerge demo` and `submerge lab crowd` read. It makes readings
and knows the true faults; it scores nothing. The other generated plants are in `benchmarks/plants`,
and are not shipped.
"""
