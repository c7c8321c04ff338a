"""Hosts: under which names a browser may come, and which origins are the page's own.

A page of another site can have a browser send requests here, and a name that its owner points to
this machine makes them look like the site's own ("DNS rebinding"). So requests come under names
that no stranger can point elsewhere: addresses, this machine's own names, and configured ones.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Iterable
from typing import NamedTuple
from urllib.parse import urlsplit

from submerge_client.config.links import is_here


class Hosts(NamedTuple):
    """The names of a page.

    own : of this machine, without ports
    configured : as the configuration has them, with ports or without
    """

    own: frozenset[str]
    configured: frozenset[str]

    @classmethod
    def of(cls, own: Iterable[str], configured: Iterable[str]) -> Hosts:
        """Return names, however they are written."""
        return cls(
            frozenset(each.lower() for each in ("localhost", *own)),
            frozenset(each.lower() for each in configured),
        )

    def knows(self, host: str) -> bool:
        """Return whether a request may come under the name in its `Host` header."""
        name = _name(host)
        return self.is_configured(host) or name in self.own or _is_address(name)

    def is_configured(self, host: str) -> bool:
        """Return whether it is a configured name: that of a proxy, or of a certificate."""
        name = _name(host)
        return bool(name) and bool({host.lower(), name} & self.configured)

    def is_own(self, origin: str, host: str, *, secure: bool) -> bool:
        """Return whether a page that sends a request is one of these.

        origin : the request's `Origin` header
        host : its `Host` header, a known one
        secure : whether it came by TLS; before a configured name a proxy may have taken it off
        """
        schemes = {"https" if secure else "http"}
        if self.is_configured(host):
            schemes.add("https")
        return origin.lower() in {f"{scheme}://{host.lower()}" for scheme in schemes}


def is_loopback(host: str) -> bool:
    """Return whether a `Host` header names a way that leads to this machine alone."""
    return is_here(_name(host))


def _name(host: str) -> str:
    """Return a host without its port; empty if it is not written as browsers do."""
    try:
        parts = urlsplit(f"//{host}")
        name, port = parts.hostname or "", parts.port
    except ValueError:
        return ""
    shown = f"[{name}]" if ":" in name else name
    # What else was there would be read in another way elsewhere: a user, a path, "[::1]evil.com".
    return name if host.lower() in (shown, f"{shown}:{port}") else ""


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
