"""Messages as protobuf bytes, and back. Foreign bytes are checked here, in `codec.decode`.

The other modules each convert one part of a message. Records that a node keeps for itself are
in `submerge_proto.kept`. Nothing here opens a socket.
"""
