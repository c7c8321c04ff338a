"""ParentLink: an aggregator's way to its parent: what was sent and heard, and what the log says."""

from __future__ import annotations

import logging
from collections.abc import Callable

from submerge.protocol.machine import Now
from submerge_client.logs import say
from submerge_client.reach import Reach
from submerge_client.uplink import (
    Came,
    Opened,
    Parted,
    SendRefused,
    Slowed,
    TooLarge,
    Uplink,
)
from submerge_client.uplink.identity import Credentials
from submerge_proto.wire.codec import Kind


class ParentLink:
    """The way to the parent.

    uplink : None at the root.

    sent_bytes, heard_bytes : Bytes of messages, without what the transport adds.
    """

    def __init__(self, uplink: Uplink | None, clock: Callable[[], Now]) -> None:
        self.uplink, self._clock = uplink, clock
        self.reach = Reach(lambda: clock().steady)
        self.sent_bytes = self.heard_bytes = 0

    def send(self, kind: Kind, group: str, data: bytes) -> None:
        """Send a message of the machine; one that is too large is logged."""
        if self.uplink is None:
            return
        try:
            self.uplink.send(kind, group, data)
            self.sent_bytes += len(data)
        except TooLarge as error:
            say("report too large", level=logging.ERROR, why=str(error))

    def send_job(self, group: str, data: bytes) -> None:
        """Send a message of a job; it may raise TooLarge."""
        if self.uplink is not None:
            self.uplink.send("job", group, data)
            self.sent_bytes += len(data)

    def notice(self, item: object, credentials: Credentials | None) -> None:
        """Count the parent's messages, and log when it goes away and comes back."""
        if isinstance(item, Came):
            self.heard_bytes += len(item.data)
            self.reach.heard()
        elif isinstance(item, Parted):
            why = item.why
            if credentials is not None:
                why = credentials.explain(why, self._clock().wall)
            self.reach.parted(why)
        elif isinstance(item, Opened):
            self.reach.opened()
        elif isinstance(item, SendRefused):
            self.reach.refused(item.why)
        elif isinstance(item, Slowed):
            self.reach.slowed(item.why)
