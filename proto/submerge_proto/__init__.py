"""The wire: messages as bytes, and where they go."""
