"""Version 1 of the wire: code that `make proto` generates from the .proto files beside it.

It is not edited by hand, and only the other folders of `submerge_proto` and the gRPC transports
import it.
"""
