"""Messages and records as protobuf bytes, and back."""
