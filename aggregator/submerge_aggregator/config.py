"""AggregatorConfig: the configuration of an aggregator, or of a root: without `[parent]`."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import asdict

from submerge.aggregator.group import GroupPlan
from submerge.protocol.settings import AggregatorSettings
from submerge_aggregator.audit import AuditConfig
from submerge_aggregator.downlink.config import GrpcListen, ListenConfig, MqttListen, SecurityConfig
from submerge_aggregator.limits import has_room, largest_message
from submerge_aggregator.noise import OpenDpNoise, noisy
from submerge_aggregator.operators.config import OperatorsConfig
from submerge_aggregator.page.config import PageConfig
from submerge_client.config.alarms import Destinations
from submerge_client.config.links import Endpoint, RetryConfig, UplinkConfig, endpoint_of
from submerge_client.config.removed import AGGREGATOR
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sections import (
    AboveZero,
    AnyText,
    Name,
    NamePattern,
    NodeName,
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
    """The aggregator above, and the way to it.

    name : Its node name. Under another name it is another parent, and this store starts empty.
    """

    name: NodeName


class StatusConfig(Section, frozen=True, kw_only=True):
    """Health and metrics, over HTTP.

    address : host:port; "" for none. It is unprotected: everybody who can connect can read it.
    """

    address: AnyText = "127.0.0.1:8471"

    def __post_init__(self) -> None:
        _ = self.endpoint

    @property
    def endpoint(self) -> Endpoint | None:
        """The address that it listens on, if any."""
        return endpoint_of(self.address) if self.address else None


class AggregatorTiming(Section, frozen=True, kw_only=True):
    """How often an aggregator reports and makes models.

    report_every_s : Seconds between reports to the parent, give or take 20 %. Raising it makes the
        model older, lowering it costs bytes. A root sends none.
    model_every_s : Seconds between two models of a root, at least. Raising it costs less work, and
        fewer bytes down.
    """

    report_every_s: Seconds = 300.0
    model_every_s: Seconds = 60.0


URL = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+:/")
"""A url's beginning, which no path has; a `Path` keeps only one of its slashes."""


class AppriseConfig(Section, frozen=True, kw_only=True):
    """Services that Apprise knows: e-mail, Slack, Teams, Telegram and many more: pip install
    'submerge[notify]'.

    urls_file : A file with one Apprise URL per line. It holds secrets: only its owner may read it.
    """

    urls_file: Path

    def __post_init__(self) -> None:
        if URL.match(str(self.urls_file)):
            # Not shown: a url of Apprise holds passwords.
            raise refusal(
                "urls_file",
                expected="the path of a file",
                got="a url",
                hint="write the url into a file of mode 0600, and name the file here",
            )


class NotifyConfig(Destinations, frozen=True, kw_only=True):
    """Where the alarms of all nodes below are sent, so that the nodes need not send them.

    One aggregator is enough. Each that is configured sends all alarms below it, whether or not
    another aggregator, or a node itself, has sent them.

    apprise : AppriseConfig
    """

    apprise: AppriseConfig | None = None


SOON = 20  # rows that a group's first model waits for where units say scales; else ten a direction
LEAST_BYTES = 1 << 20  # a smaller history would not hold a day of a few nodes beside its alarms

Bytes = Annotated[int, Meta(ge=0, le=1 << 40, description="a number of bytes, 0 for none")]


class HistoryConfig(Section, frozen=True, kw_only=True):
    """Scores minute by minute, past alarms, and versions of models, for people.

    max_bytes : Most bytes on disk, at least 1 MiB; the oldest goes first. 0: no history is kept.
        Raising it keeps more days: a node takes some 170 bytes an hour.
    """

    max_bytes: Bytes = 16 << 20

    def __post_init__(self) -> None:
        if 0 < self.max_bytes < LEAST_BYTES:
            raise refusal(
                "max_bytes",
                expected=f"0 for no history, or {LEAST_BYTES} at least",
                got=str(self.max_bytes),
            )


def history_path(store: str | os.PathLike[str]) -> Path:
    """Return the file of an aggregator's history: it stands beside the store."""
    return Path(f"{os.path.realpath(store)}.history")


class AdvancedConfig(RetryConfig, frozen=True, kw_only=True):
    """[advanced]: for tests and benchmarks; `RetryConfig` has the other settings.

    scaling_rows : Readings that a root waits for before it fixes center, scale and gamma.
    bounds_after_s : How long a node has to be heard before its row rate bounds others.
    burst : Messages that a quiet child may send at once: when a broker comes back, a report of each
        of its groups.
    """

    scaling_rows: Whole = 1000
    bounds_after_s: Seconds = 86400.0
    burst: Whole = 1000


class GroupConfig(Section, frozen=True, kw_only=True):
    """A group that it serves.

    summary : Its nodes need the same.
    schema : Required at a root; below it the schema comes down.
    robust : Leave out nodes that are far from the others, and cap those that claim too much.
    bounds : Whether a node counts for no more than an honest one that was heard for as long could.
    trusted : Names of nodes, with `*` and `?`, that count in full whatever they report.
    nodes : Patterns of the names that may join, report to and watch it, aggregators too. Left out:
        any name.
    flow : Lines of nodes as a fault goes on from one to the next, the most upstream first.
    """

    summary: SummaryConfig = SummaryConfig()
    schema: SchemaConfig | None = None
    robust: bool = False
    bounds: Literal["on", "off"] = "on"
    trusted: tuple[NamePattern, ...] = ()
    nodes: tuple[NamePattern, ...] | None = None
    flow: tuple[tuple[NodeName, ...], ...] = ()

    def __post_init__(self) -> None:
        if self.schema is not None:
            check_rank(self.summary, self.schema)

    @property
    def plan(self) -> GroupPlan:
        schema = self.schema
        with placed("schema"):
            built = None if schema is None else schema.built
        learns = schema is not None and schema.learns_scaling
        soon = schema is not None and schema.scaling == "units"
        return GroupPlan(
            self.summary.summaries,
            built,
            learns_scaling=learns,
            chooses_rank=not isinstance(self.summary.rank, int),
            robust=self.robust,
            bounds=self.bounds == "on",
            trusted=self.trusted,
            flow=self.flow,
            min_rows=SOON if soon else 10 * self.summary.start,
            given={} if schema is None else schema.given,
            has_room=partial(has_room, kept=self.summary.kept),
        )


class FleetPrivacyConfig(Section, frozen=True, kw_only=True):
    """What members can learn of the rows of others.

    floor : Whether new rows enter models, and reports upward, only once five children have eight
        each. Left out: in groups of five nodes or more. In smaller ones, true waits for all.
    epsilon : At a root, what all its models together may tell of one row, at delta = 1e-6; they
        carry noise then. Lowering it tells less, and needs more rows. Left out: no noise.
    """

    floor: bool | None = None
    epsilon: AboveZero | None = None


class AggregatorConfig(Section, frozen=True, kw_only=True):
    """The configuration of an aggregator.

    node : Its name, the same for ever, and its certificate's; left out, its kit's.
    store : The database of all that it has acknowledged: keep it on a disk that lasts.
    kit : Key, certificate and authority in one file, as `submerge pki issue --host` writes it, for
        links with TLS that name no files. With it children need kits of the same authority.
    listen : ListenConfig
    groups : dict of str to GroupConfig
    parent : Without one, it is the root.
    status : StatusConfig
    timing : AggregatorTiming
    alarms : NotifyConfig
    security : SecurityConfig
    privacy : FleetPrivacyConfig
    operators : Without it operators are on this machine: the socket beside the store.
    page : PageConfig
    audit : AuditConfig
    history : HistoryConfig
    log : The lowest level that is logged.
    advanced : For tests and benchmarks; not in the sample.
    """

    node: NodeName
    store: Path
    kit: Path | None = None
    listen: ListenConfig
    groups: dict[Name, GroupConfig]
    parent: ParentConfig | None = None
    status: StatusConfig = StatusConfig()
    timing: AggregatorTiming = AggregatorTiming()
    alarms: NotifyConfig = NotifyConfig()
    security: SecurityConfig = SecurityConfig()
    privacy: FleetPrivacyConfig = FleetPrivacyConfig()
    operators: OperatorsConfig | None = None
    page: PageConfig | None = None
    audit: AuditConfig = AuditConfig()
    history: HistoryConfig = HistoryConfig()
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
        self._check_operators()
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

    def _check_operators(self) -> None:
        """Check the ways of operators: each has a certificate where it needs one, and a port."""
        grpc, operators, status = self.listen.grpc, self.operators, self.status.endpoint
        known = self.kit is not None or (grpc is not None and grpc.cert is not None)
        if operators is not None:
            operators.check(has_certificate=known, status=status)
        if self.page is not None:
            known = known or (operators is not None and operators.cert is not None)
            others = {"status.address": status}
            if operators is not None:
                others["operators.address"] = operators.endpoint
            self.page.check(has_certificate=known, taken=others)

    def _check_sizes(self, name: str, summary: SummaryConfig, config: SchemaConfig) -> None:
        """Check that reports fit up, and models down."""
        check = partial(check_size, config.dim, summary.kept, linear=summary.linear(config))
        features = "" if config.features is None else "schema.features.features, "
        lower = f"{features}schema.lags, {summary.widest} or summary.oversample of group {name}"
        if self.parent is not None:
            raised = f"{lower}, or raise it as far as the parent does"
            at = ("parent", "max_message_bytes")
            check(self.parent.limit, at=at, lower=raised, merged=True)
            more = f"{config.lengthy} of group {name}, or raise it as far as the parent does"
            check_join(config.text_bytes, self.parent.limit, at=at, lower=more, merged=True)
        for way, others in (("grpc", "the children do"), ("mqtt", "broker and children do")):
            listen: GrpcListen | MqttListen | None = getattr(self.listen, way)
            if listen is not None:
                place, limit = ("listen", way, "max_message_bytes"), self.limit(way)
                raised = f"{lower}, or raise it as far as {others}"
                check(limit, at=place, lower=raised)
                # Only now: the text of the schema is built only if that can fit.
                check(limit, at=place, lower=raised, text=config.text_bytes)

    def limit(self, way: str) -> int:
        """Return the most bytes of a message that comes in by "grpc" or "mqtt"."""
        listen = self.listen.grpc if way == "grpc" else self.listen.mqtt
        if listen is not None and listen.max_message_bytes is not None:
            return listen.max_message_bytes
        groups = ((group.summary, group.schema) for group in self.groups.values())
        return largest_message(groups, GRPC_LIMIT if way == "grpc" else MQTT_LIMIT)

    @property
    def addresses(self) -> dict[str, Endpoint]:
        """Where it listens, by setting; a page without an address takes any that is free."""
        servers = {
            "listen.grpc.address": self.listen.grpc,
            "status.address": self.status,
            "operators.address": self.operators,
            "page.address": self.page if self.page is not None and self.page.address else None,
        }
        found = {name: each.endpoint for name, each in servers.items() if each is not None}
        return {name: endpoint for name, endpoint in found.items() if endpoint is not None}

    @property
    def takes_kit(self) -> bool:
        """Whether some link has TLS by the node's kit."""
        grpc, links = self.listen.grpc, (self.parent, self.listen.mqtt)
        served = grpc is not None and not grpc.insecure and grpc.cert is None
        return served or any(link is not None and link.takes_kit for link in links)

    @property
    def settings(self) -> AggregatorSettings:
        parent = None if self.parent is None else self.parent.name
        advanced = asdict(self.advanced)
        del advanced["burst"]  # for the server, not for the node
        return AggregatorSettings(self.node, parent, **asdict(self.timing), **advanced)

    @property
    def plans(self) -> dict[str, GroupPlan]:
        """Plans of the groups, for the node. Landmarks are read from their files."""
        plans, epsilon = {}, self.privacy.epsilon
        noise = None if epsilon is None else OpenDpNoise(epsilon)
        for name, group in self.groups.items():
            with placed("groups", name):
                plan = replace(group.plan, floor=self.privacy.floor)
                if noise is not None:
                    lags = 1 if group.schema is None else group.schema.lags
                    plan = noisy(plan, noise, lags=lags)
                plans[name] = plan
        return plans


def load(path: Path | str, environ: Mapping[str, str]) -> AggregatorConfig:
    """Return the configuration in a file, with the environment's overrides; or a mistake."""
    return read(path, AggregatorConfig, environ, program="aggregator", removed=AGGREGATOR)
