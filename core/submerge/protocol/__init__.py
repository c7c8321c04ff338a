"""What client and aggregator share; `submerge_proto` turns the messages into bytes."""
