"""Version 1 of the wire, generated from the .proto files beside it (`make proto`)."""
