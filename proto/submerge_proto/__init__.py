"""Messages and records as protobuf bytes, and back.

Nothing here sends, stores or decides anything. Transports are in `submerge_client.uplink` and
`submerge_aggregator.downlink`.
"""
