"""Records that nodes keep for themselves, as protobuf bytes, and back.

Checkpoints and stores hold these records behind a checksum. Files and databases are not opened
here.
"""
