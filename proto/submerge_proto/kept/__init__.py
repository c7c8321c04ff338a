"""Records that nodes keep for themselves, as protobuf bytes, and back."""
