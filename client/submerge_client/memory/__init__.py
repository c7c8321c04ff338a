"""What keeps a client small: random numbers without NumPy's generators, modules that load late,
and the C library's allocator.

benchmarks/footprint.md has what each brings. Nothing here knows rows, nodes or messages.
"""
