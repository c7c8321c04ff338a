"""OperatorsConfig: the address where operators reach an aggregator over the network."""

from __future__ import annotations

import os
from pathlib import Path

from submerge_client.config.links import Endpoint, Served
from submerge_client.config.sections import AnyText, refusal, shown

PORT = 8472  # where no other is named; 8471 is that of the status address


class OperatorsConfig(Served, frozen=True, kw_only=True):
    """Orders over HTTPS, from people and programs on other machines.

    insecure : Serve without TLS, on a loopback address only: then tokens alone say who asks.
    cert, key : The server's certificate and key; left out, those of [listen.grpc], or of the node's
        kit.
    ca : Certificates of these authorities, with role operator or reader, are accepted. Left out
        beside cert and key, none are: tokens alone say who asks.
    tokens : A file with the hashes of tokens, as `submerge aggregator token new` writes it; left
        out, STORE.tokens beside the store. It is read again when it changes.
    """

    address: AnyText = f"0.0.0.0:{PORT}"
    tokens: Path | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.insecure and not self.stays_here:
            raise refusal(
                "insecure",
                expected="false where other machines can connect: they would read tokens",
                got="true",
                hint='delete it, or use address = "127.0.0.1:8472"',
            )

    def check(self, *, has_certificate: bool, status: Endpoint | None) -> None:
        """Refuse a section without a certificate to serve with, or on the status port."""
        if not self.insecure and self.cert is None and not has_certificate:
            raise refusal(
                *("operators", "cert"),
                expected="a certificate and its key, or a kit",
                got="nothing",
                hint="name a kit: operators send tokens, which others must not read",
            )
        if status is not None and status.port == self.endpoint.port != 0:
            raise refusal(
                *("operators", "address"),
                expected="another port than that of status.address",
                got=shown(self.address),
                hint=f"take port {PORT}, or move status.address",
            )


def tokens_path(config: OperatorsConfig | None, store: Path) -> Path:
    if config is not None and config.tokens is not None:
        return config.tokens
    return Path(f"{os.path.realpath(store)}.tokens")
