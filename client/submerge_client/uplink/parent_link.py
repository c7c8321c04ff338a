"""The way to the parent: what was sent and heard, and what the log says when it is out of reach."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from submerge.protocol.machine import Now
from submerge_client.logs import say
from submerge_client.uplink import Came, Opened, Parted, SendRefused, Slowed, TooLarge, Uplink
from submerge_client.uplink.tls import Credentials
from submerge_proto.wire.codec import Kind

# A parent that comes and goes, or a connection that fails for a new reason each second, must not
# fill the log of a node that runs for years.

REMIND_S = 60.0  # seconds between two warnings that the parent is out of reach
START_S = 5.0  # how long a parent may be away after the start, without a warning

SILENT_S = 20.0
"""How long a parent may be silent once the connection is open. Over a broker, a misspelt name
shows by nothing else."""


class Reach:
    """Whether the parent can be reached, as far as is known."""

    def __init__(self, steady: Callable[[], float] = time.monotonic) -> None:
        self.why: str | None = None
        self._steady = steady
        self._logged = False  # this absence
        self._next_at = steady() + START_S
        self._refusal, self._refused_at = "", -math.inf
        self._slowed_at = -math.inf
        self._silent_at = math.inf  # when its silence is too long

    @property
    def due_s(self) -> float:
        """Seconds until there may be something to log."""
        at = self._silent_at if self.why is None else self._next_at
        return max(0.0, at - self._steady())

    def parted(self, why: str) -> None:
        self.why, self._silent_at = why, math.inf
        self.remind()

    def opened(self) -> None:
        if self._logged:
            say("parent reached again")
        self.why, self._logged = None, False
        self._silent_at = self._steady() + SILENT_S

    def heard(self) -> None:
        self._silent_at = math.inf

    def refused(self, why: str) -> None:
        if why != self._refusal or self._steady() >= self._refused_at + REMIND_S:
            self._refusal, self._refused_at = why, self._steady()
            say("refused by the parent", level="warning", why=why)

    def slowed(self, why: str) -> None:
        """Note that the parent asks for fewer messages; the node backs off by itself."""
        if self._steady() >= self._slowed_at + REMIND_S:
            self._slowed_at = self._steady()
            say("the parent asks for less, trying later", level="warning", why=why)

    def remind(self) -> None:
        """Log that the parent is away or silent, if it is and a warning is due."""
        if self.why is None and self._steady() >= self._silent_at:
            self._silent_at = self._steady() + REMIND_S
            why = "is it there, under that name, and in that fleet?"
            say("the parent does not answer", level="warning", why=why)
        if self.why is None or self._steady() < self._next_at:
            return
        what = "parent still unreachable" if self._logged else "parent unreachable, trying on"
        say(what, level="warning", why=self.why)
        self._logged, self._next_at = True, self._steady() + REMIND_S


class ParentLink:
    def __init__(self, uplink: Uplink | None, clock: Callable[[], Now]) -> None:
        self.uplink, self._clock = uplink, clock
        self.reach = Reach(lambda: clock().steady)
        self.sent_bytes = self.heard_bytes = 0

    def send(self, kind: Kind, group: str, data: bytes, *, final: bool = False) -> None:
        """Send a message of the machine; one that is too large is logged."""
        # The configuration was checked by the same formula: that is a bug, or a final of an earlier
        # configuration. Neither ends a node.
        if self.uplink is None:
            return
        try:
            self.uplink.send(kind, group, data, final=final)
            self.sent_bytes += len(data)
        except TooLarge as error:
            say("message too large", level="error", why=str(error))

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
