"""Messages as protobuf bytes, and back. Foreign bytes are checked here, in `codec.decode`."""
