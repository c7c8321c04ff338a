"""Version 1 of the wire: code that `make proto` generates from the .proto files beside it."""
