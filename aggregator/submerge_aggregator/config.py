"""AggregatorConfig: all that an aggregator is told, from one TOML file.

A root is one without `[parent]`: it says what each group's vectors mean. Below it the schema
comes down, and may be left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec.structs import asdict

from submerge.aggregator.group import GroupPlan
from submerge.protocol.settings import AggregatorSettings
from submerge_aggregator.notify.config import NotifyConfig
from submerge_client.config.links import (
    Endpoint,
    Link,
    RetryConfig,
    UplinkConfig,
    check_insecure,
    check_pair,
    endpoint_of,
)
from submerge_client.config.removed import AGGREGATOR
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sections import (
    AboveZero,
    Name,
    Seconds,
    Section,
    Whole,
    placed,
    refusal,
    shown,
)
from submerge_client.config.sizes import GRPC_LIMIT, MQTT_LIMIT, check_join, check_size
from submerge_client.config.summary import SummaryConfig, check_rank
from submerge_client.config.tomlfile import read


class ParentConfig(UplinkConfig, frozen=True, kw_only=True):
    """The aggregator above, and the way to it; `UplinkConfig` has the other settings.

    Attributes
    ----------
    name : str
        Its node name. Another one is another parent: this store is then begun anew.
    """

    name: Name


class GrpcListen(Section, frozen=True, kw_only=True):
    """A gRPC server for children.

    Attributes
    ----------
    address : str
        host:port; 0.0.0.0 is every network that this machine has.
    insecure : bool
        Serve without TLS: on this network everybody is trusted.
    cert, key : Path, optional
        The server's certificate, and the key to it; left out, those of the node's kit.
    ca : Path, optional
        With it children need certificates of these authorities, each under its own name.
    max_message_bytes : int
        Larger messages are refused. Raising it lets each child take more memory at a time.
    """

    address: str = "0.0.0.0:8470"
    insecure: bool = False
    cert: Path | None = None
    key: Path | None = None
    ca: Path | None = None
    max_message_bytes: Whole = GRPC_LIMIT

    def __post_init__(self) -> None:
        _ = self.endpoint
        check_pair(self.cert, self.key)
        if self.cert is not None:
            check_insecure(self.insecure, "a certificate")
        elif self.ca is not None:
            raise refusal(
                "ca",
                expected="none without cert and key: there is no TLS",
                got=shown(self.ca),
                hint="leave it out, or name both",
            )

    @property
    def endpoint(self) -> Endpoint:
        """Where it listens."""
        return endpoint_of(self.address)


class MqttListen(Link, frozen=True, kw_only=True):
    """A broker that children publish to; `Link` has the other settings.

    Attributes
    ----------
    fleet : str
        As the children's.
    max_message_bytes : int
        Larger messages are refused, and none is published. Raise it only as far as the broker
        does, and the children.
    """

    fleet: Name = "default"
    max_message_bytes: Whole = MQTT_LIMIT


class ListenConfig(Section, frozen=True, kw_only=True):
    """How children reach it: one way, or both at once.

    Attributes
    ----------
    most_per_s : float
        Messages a second that each child may send for long; of one that has no certificate and
        no topic, those of a connection. Each 8 KiB of a long one count as one more. What is more
        is refused. Raising it lets one that has gone wild cost more.
    grpc : GrpcListen, optional
    mqtt : MqttListen, optional
    """

    most_per_s: AboveZero = 20.0
    grpc: GrpcListen | None = None
    mqtt: MqttListen | None = None

    def __post_init__(self) -> None:
        if self.grpc is None and self.mqtt is None:
            raise refusal(
                expected="[listen.grpc], [listen.mqtt] or both",
                got="neither",
                hint="add one: an aggregator that nobody reaches has nothing to do",
            )


class StatusConfig(Section, frozen=True, kw_only=True):
    """Health and metrics, over HTTP.

    Attributes
    ----------
    address : str
        host:port; "" for none. Nothing protects it: whoever reaches it can read it.
    """

    address: str = "127.0.0.1:8471"

    def __post_init__(self) -> None:
        _ = self.endpoint

    @property
    def endpoint(self) -> Endpoint | None:
        """Where it listens, if it does."""
        return endpoint_of(self.address) if self.address else None


class AggregatorTiming(Section, frozen=True, kw_only=True):
    """When an aggregator speaks; see `AggregatorSettings`.

    Attributes
    ----------
    report_every_s : float
        Raising it costs the model its freshness, lowering it costs bytes. A root sends none.
    model_every_s : float
        A root's model follows what is reported no faster. Raising it costs less work, and
        fewer bytes down.
    """

    report_every_s: Seconds = 300.0
    model_every_s: Seconds = 60.0


class AdvancedConfig(RetryConfig, frozen=True, kw_only=True):
    """[advanced]: for tests and benchmarks; `RetryConfig` has the other settings.

    Attributes
    ----------
    scaling_rows : int
        Readings that a root waits for before it settles on center, scale and gamma.
    burst : int
        Messages that a child may send at once, after it was quiet: when a broker comes back, a
        report of each of its groups.
    """

    scaling_rows: Whole = 1000
    burst: Whole = 1000


class GroupConfig(Section, frozen=True, kw_only=True):
    """A group that is served.

    Attributes
    ----------
    summary : SummaryConfig
        What is kept and merged of its reports. Its nodes need the same.
    schema : SchemaConfig, optional
        What its vectors mean: a root has to say it.
    robust : bool
        Leave out clients that are far from the others, and cap those that claim too much.
    """

    summary: SummaryConfig = SummaryConfig()
    schema: SchemaConfig | None = None
    robust: bool = False

    def __post_init__(self) -> None:
        if self.schema is not None:
            check_rank(self.summary, self.schema)

    @property
    def plan(self) -> GroupPlan:
        """It as the node sees it."""
        schema = self.schema
        with placed("schema"):
            built = None if schema is None else schema.built
        learns = schema is not None and schema.learns_scaling
        return GroupPlan(self.summary.summaries, built, learns_scaling=learns, robust=self.robust)


class AggregatorConfig(Section, frozen=True, kw_only=True):
    """All that an aggregator is told.

    Attributes
    ----------
    node : str
        Its name, the same for ever, and its certificate's; left out, its kit's.
    store : Path
        Its database: what it has acknowledged.
    kit : Path, optional
        The file that makes it known, for links with TLS that name no files of their own. With
        it children need kits of the same authority.
    listen : ListenConfig
    groups : dict of str to GroupConfig
    parent : ParentConfig, optional
        Left out, it is the root.
    status : StatusConfig
    timing : TimingConfig
    alarms : AlarmsConfig
    log : {"debug", "info", "warning", "error"}
        The least that is worth a line.
    advanced : AdvancedConfig
        For tests and benchmarks: in no sample.
    """

    node: Name
    store: Path
    kit: Path | None = None
    listen: ListenConfig
    groups: dict[Name, GroupConfig]
    parent: ParentConfig | None = None
    status: StatusConfig = StatusConfig()
    timing: AggregatorTiming = AggregatorTiming()
    alarms: NotifyConfig = NotifyConfig()
    log: Literal["debug", "info", "warning", "error"] = "info"
    advanced: AdvancedConfig = AdvancedConfig()

    def __post_init__(self) -> None:
        if self.parent is not None and self.parent.name == self.node:
            raise refusal("parent", "name", expected="another node", got=shown(self.node))
        grpc = self.listen.grpc
        if grpc is not None and not grpc.insecure and grpc.cert is None and self.kit is None:
            raise refusal(
                *("listen", "grpc", "cert"),
                expected="a certificate and its key, or a kit",
                got="nothing",
                hint="name a kit, or say insecure = true if the network is trusted",
            )
        if self.node == "score" and self.listen.mqtt is not None:
            raise refusal("node", expected="a name that is no topic of ours", got=shown(self.node))
        if not self.groups:
            raise refusal("groups", expected="at least one, [groups.NAME]", got="none")
        for name, group in self.groups.items():
            if group.schema is not None:
                self._check_sizes(name, group.summary, group.schema)
            elif self.parent is None:
                raise refusal(
                    *("groups", name, "schema"),
                    expected="one from the root",
                    got="nothing",
                    hint="add it, or name a [parent] that it comes from",
                )
        _ = self.settings

    def _check_sizes(self, name: str, summary: SummaryConfig, config: SchemaConfig) -> None:
        """Whether reports fit up, and models down."""
        check = partial(check_size, config.dim, summary.kept, linear=summary.linear(config))
        features = "" if config.features is None else "schema.features.features, "
        lower = f"{features}schema.lags, summary.rank or summary.oversample of group {name}"
        if self.parent is not None:
            raised = f"{lower}, or raise it as far as the parent does"
            at = ("parent", "max_message_bytes")
            check(self.parent.limit, at=at, lower=raised, merged=True)
            more = f"{config.lengthy} of group {name}, or raise it as far as the parent does"
            check_join(config.text_bytes, self.parent.limit, at=at, lower=more, merged=True)
        for way, others in (("grpc", "the children do"), ("mqtt", "broker and children do")):
            listen: GrpcListen | MqttListen | None = getattr(self.listen, way)
            if listen is not None:
                place, limit = ("listen", way, "max_message_bytes"), listen.max_message_bytes
                raised = f"{lower}, or raise it as far as {others}"
                check(limit, at=place, lower=raised)
                # Built only now: the text of a schema that fits.
                check(limit, at=place, lower=raised, text=config.text_bytes)

    @property
    def takes_kit(self) -> bool:
        """Whether some link has TLS by the node's kit."""
        grpc, links = self.listen.grpc, (self.parent, self.listen.mqtt)
        served = grpc is not None and not grpc.insecure and grpc.cert is None
        return served or any(link is not None and link.takes_kit for link in links)

    @property
    def settings(self) -> AggregatorSettings:
        """How its node behaves."""
        parent = None if self.parent is None else self.parent.name
        advanced = asdict(self.advanced)
        del advanced["burst"]  # of the border, not of the node
        return AggregatorSettings(self.node, parent, **asdict(self.timing), **advanced)

    @property
    def plans(self) -> dict[str, GroupPlan]:
        """The groups as the node sees them. Landmarks are read from their files."""
        plans = {}
        for name, group in self.groups.items():
            with placed("groups", name):
                plans[name] = group.plan
        return plans


def load(path: Path | str, environ: Mapping[str, str]) -> AggregatorConfig:
    """Return the configuration in a file, with the environment's overrides.

    Raises
    ------
    UsageError
        For the first mistake, in one line.
    """
    return read(path, AggregatorConfig, environ, program="aggregator", removed=AGGREGATOR)
