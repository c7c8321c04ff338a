"""make_uplink(): the uplink that a configuration names. Modules of other kinds are not loaded."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol

from submerge import UsageError
from submerge_client.config.links import UplinkConfig
from submerge_client.logs import say
from submerge_client.uplink import Uplink
from submerge_client.uplink.tls import ParentName, tls_of


def make_uplink(
    link: UplinkConfig, *, parent: str, node: str, groups: Sequence[str], kit: Path | None = None
) -> Uplink:
    """Return the uplink to a parent, not open yet; `kit` as in `tls_of`."""
    tls = tls_of(link, kit)
    try:
        if link.scheme in ("grpc", "grpcs"):
            # A sensor's program is started beside gRPC, whose handlers of forks may abort the child
            # before it becomes that program (grpc/grpc#43055); no child of ours goes on with it.
            os.environ.setdefault("GRPC_ENABLE_FORK_SUPPORT", "0")
            from submerge_client.uplink.over_grpc import GrpcUplink

            host = f"[{link.host}]" if ":" in link.host else link.host
            target = f"{host}:{link.port}"
            name = None if tls is None else ParentName(parent, link.host, link.port, tls)
            return GrpcUplink(
                target, node=node, groups=groups, limit=link.limit, tls=tls, name=name
            )
        if link.is_broker:
            from submerge_client.uplink.broker import broker_of
            from submerge_client.uplink.over_mqtt import MqttUplink

            return MqttUplink(
                broker_of(link, kit),
                fleet=link.fleet,
                parent=parent,
                node=node,
                groups=groups,
                limit=link.limit,
            )
    except ImportError as error:
        extra = "grpc" if link.scheme.startswith("grpc") else "mqtt"
        raise UsageError(
            f"{link.url} needs {error.name}, which is not installed:"
            f" pip install 'submerge[{extra}]'"
        ) from error
    from submerge_client.uplink.in_memory import hub

    return hub(link.host).uplink(node, groups, limit=link.limit)


class Allowed(Protocol):
    """A section that may allow a link without TLS."""

    @property
    def insecure(self) -> bool:
        """Whether it does."""

    @property
    def stays_here(self) -> bool:
        """Whether it joins programs of one machine: no network is between them."""


def warn_of_insecure(links: Mapping[str, Allowed | None], *, idle: Path | None = None) -> None:
    """Log each link over a network without TLS, and `idle`, a kit that protects no link."""
    if idle is not None:
        hint = "take out insecure, and write grpcs:// for grpc://"
        say("the kit is used by no link", level="warning", kit=str(idle), hint=hint)
    for setting, link in links.items():
        if link is not None and link.insecure and not link.stays_here:
            say("no TLS: others can read and forge this link", level="warning", link=setting)
