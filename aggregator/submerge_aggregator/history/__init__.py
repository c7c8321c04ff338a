"""The history of an aggregator, for people, which may be lost (docs/decisions/0049)."""
