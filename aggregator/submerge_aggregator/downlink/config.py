"""Settings of the ways to the children: [listen], [listen.grpc] and [listen.mqtt]."""

from __future__ import annotations

from pathlib import Path

from submerge_aggregator.limits import MOST_BYTES
from submerge_client.config.links import Link, Served
from submerge_client.config.sections import AboveZero, AnyText, Name, Section, Text, Whole, refusal


class AdmissionConfig(Section, frozen=True, kw_only=True):
    """Who may be what; a part of [listen].

    roster : A CSV file with the columns node, role and groups. It decides for nodes whose
        certificate names no role, and for all that come through a broker. It is read again when it
        changes.
    legacy_kits : Certificates without a role, made before there were roles, are let in over gRPC.
        False refuses them.
    aggregators : Patterns of the names that may report as aggregators, whatever else allows it.
        Left out: any name.
    """

    roster: Path | None = None
    legacy_kits: bool = True
    aggregators: tuple[Text, ...] | None = None


class SecurityConfig(Section, frozen=True, kw_only=True):
    """Nodes and certificates that are shut out.

    revoked : A file with lines `serial HEX` and `node NAME`, as `submerge pki revoke` writes it. It
        is read again when it changes.
    """

    revoked: Path | None = None


class GrpcListen(Served, frozen=True, kw_only=True):
    """A gRPC server for children.

    insecure : Serve without TLS. Everybody on the network can then read and forge messages.
    ca : With it children need certificates of these authorities, each under its own name.
    max_message_bytes : Larger messages are refused. Left out, it follows from the groups. Raising
        it lets each child take more memory at a time, and leaves room for fewer at once.
    max_connections : Further connections are closed at once. Each child has one, and each takes up
        to 100 KiB.
    """

    address: AnyText = "0.0.0.0:8470"
    max_message_bytes: Whole | None = None
    max_connections: Whole = 1200


class MqttListen(Link, frozen=True, kw_only=True):
    """The broker of the children.

    fleet : As at the children: topics begin with `submerge/v1/{fleet}/`.
    max_message_bytes : Larger messages are refused, and none is published. Left out, what comes in
        is bounded as the groups need, and what goes out by 122880. Raise it only as far as the
        broker and the children do.
    """

    fleet: Name = "default"
    max_message_bytes: Whole | None = None


class ListenConfig(AdmissionConfig, frozen=True, kw_only=True):
    """How children reach it: over gRPC, through a broker, or both.

    most_per_s : Messages a second that each child may send without end; without certificate and
        topic, each connection. Each 8 KiB of a long message count as one more. Further messages are
        refused. Raising it lets a child that has gone wild cost more.
    max_unanswered_bytes : Bytes of all messages that are being read or wait for their answers. Of
        one child at most an eighth. Raising it lets a flood take more memory, before other children
        have to wait.
    grpc : GrpcListen, optional
    mqtt : MqttListen, optional
    """

    most_per_s: AboveZero = 20.0
    max_unanswered_bytes: Whole = 2 * MOST_BYTES
    grpc: GrpcListen | None = None
    mqtt: MqttListen | None = None

    def __post_init__(self) -> None:
        if self.grpc is None and self.mqtt is None:
            raise refusal(
                expected="[listen.grpc], [listen.mqtt] or both",
                got="neither",
                hint="add one: children have to reach it",
            )
