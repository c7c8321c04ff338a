"""The client app: each pump learns its own rows."""

from pumps.task import GROUP, readings
from submerge.flower import client_app


def rows(_message, context, taken):
    """The rows of this pump that come after those that it has taken already."""
    return readings(context.node_config["partition-id"], taken)


app = client_app(GROUP, rows)
