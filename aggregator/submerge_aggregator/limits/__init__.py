"""Limits: how much memory what children send may take.

A budget of bytes for messages that wait, the size of the largest message that an honest child of
these groups sends, and how the C library's allocator is set up to return what it has freed.
"""
