"""PageConfig: the address where browsers find an aggregator's page."""

from __future__ import annotations

from pathlib import Path

from submerge_client.config.links import Endpoint, check_pair, endpoint_of, is_here
from submerge_client.config.sections import AnyText, Section, Text, refusal, shown

PORT = 8473
"""Where no other is named; the ports before it are those of children, status and operators."""

PORTS = range(PORT, PORT + 10)
"""Several aggregators on one machine take one after the other."""


class PageConfig(Section, frozen=True, kw_only=True):
    """A page for people, in a browser: pip install 'submerge[page]'.

    address : host:port; left out, 127.0.0.1 and the first of ten ports that is free, 8473 as a
        rule. On any other address it needs TLS.
    names : Further names that browsers know this machine by, host or host:port: those in its
        certificate, and that of a proxy before it.
    cert, key : The server's certificate and key; left out, those of [operators], of [listen.grpc],
        or of the node's kit. On 127.0.0.1 there is no TLS without them.
    """

    address: AnyText | None = None
    names: tuple[Text, ...] = ()
    cert: Path | None = None
    key: Path | None = None

    def __post_init__(self) -> None:
        _ = self.endpoint
        check_pair(self.cert, self.key)
        for name in self.names:
            if not is_host(name):
                raise refusal(
                    "names",
                    expected="names of hosts, as fleet.example.org or fleet.example.org:8443",
                    got=shown(name),
                )

    @property
    def endpoint(self) -> Endpoint:
        """The address that it listens on; the first of several."""
        return endpoint_of(f"127.0.0.1:{PORT}" if self.address is None else self.address)

    @property
    def is_local(self) -> bool:
        """Whether only this machine can connect."""
        return is_here(self.endpoint.host)

    def check(self, *, has_certificate: bool, taken: dict[str, Endpoint | None]) -> None:
        """Refuse a page that others could read along, or on a port that is `taken`."""
        if not self.is_local and self.cert is None and not has_certificate:
            raise refusal(
                *("page", "cert"),
                expected="a certificate and its key, or a kit, where other machines can connect",
                got="nothing",
                hint=f'name them, or use address = "127.0.0.1:{PORT}"',
            )
        for section, other in taken.items():
            if self.address and other is not None and other.port == self.endpoint.port != 0:
                raise refusal(
                    *("page", "address"),
                    expected=f"another port than that of {section}",
                    got=shown(self.address),
                    hint=f"take port {PORT}, or move {section}",
                )


def is_host(text: str) -> bool:
    """Return whether a text is a host's name or address, with a port or without."""
    name, colon, port = text.partition(":") if not text.startswith("[") else ("", "", "")
    if not name:
        return False
    letters = name.replace("-", "").replace(".", "")
    return letters.isascii() and letters.isalnum() and (not colon or port.isdecimal())
