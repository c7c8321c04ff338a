"""BoxConfig: all settings of one machine that watches its own sensors: of a client and its root."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal

from msgspec.structs import fields, replace

from submerge_aggregator.config import (
    AdvancedConfig,
    AggregatorConfig,
    AggregatorTiming,
    GroupConfig,
    HistoryConfig,
    StatusConfig,
)
from submerge_aggregator.downlink.config import ListenConfig
from submerge_aggregator.operators.config import OperatorsConfig
from submerge_aggregator.page.config import PageConfig
from submerge_client.config.alarms import AlarmsConfig, LearnConfig
from submerge_client.config.client_config import (
    ClientConfig,
    ClientTiming,
    PrivacyConfig,
    ScoresConfig,
)
from submerge_client.config.links import UplinkConfig
from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.config.sections import Name, Section, refusal, shown
from submerge_client.config.sensors import AnySensor
from submerge_client.config.summary import LearntSummary
from submerge_client.config.tomlfile import read

ROOT = "root"  # what follows a machine's name in that of its root

OFTEN_S = 30.0
"""Seconds between reports, and between models: inside one process they cost a write to disk."""

SCALED_FROM = 200  # rows of which the scale of each channel is measured: a score comes after them


class BoxListen(ListenConfig, frozen=True, kw_only=True):
    """How other machines reach this one; without sections none can."""

    def __post_init__(self) -> None:
        """Take no way in as well: its own client is inside."""


class BoxConfig(Section, frozen=True, kw_only=True):
    """All settings of one machine.

    node : Its permanent name.
    group : The machines that share a model with it, once others join.
    folder : Where it keeps what it knows: `client.state` and `root.db`.
    kit : Its certificate and key, for links with TLS.
    sensor : AnySensor
    schema : SchemaConfig
    summary : LearntSummary
    learn : LearnConfig
    alarms : AlarmsConfig
    gaps : As a client's.
    scores : ScoresConfig
    share_values : Whether operators of this machine, and its page, may look at readings in their
        units.
    discover : Whether channels of new devices are learnt by themselves; else a person accepts them.
    listen : How other machines reach it; left out, they cannot.
    status : Health and metrics; by default none.
    operators : How operators on other machines reach it; left out, the socket in its folder is the
        only way.
    page : A page for browsers; left out, there is none.
    history : Scores of the last days, past alarms and versions.
    log : The least level of a log line.
    """

    node: Name
    group: Name = "box"
    folder: Path = Path()
    kit: Path | None = None
    sensor: AnySensor
    schema: SchemaConfig
    summary: LearntSummary = LearntSummary()
    learn: LearnConfig = LearnConfig()
    alarms: AlarmsConfig = AlarmsConfig()
    gaps: Literal["fill", "withhold"] = "fill"
    scores: ScoresConfig = ScoresConfig()
    share_values: bool = True
    discover: bool = False
    listen: BoxListen = BoxListen()
    status: StatusConfig = StatusConfig(address="")
    operators: OperatorsConfig | None = None
    page: PageConfig | None = None
    history: HistoryConfig = HistoryConfig()
    log: Literal["debug", "info", "warning", "error"] = "warning"

    def __post_init__(self) -> None:
        if self.discover and not self.sensor.hears_devices:
            raise refusal(
                "discover",
                expected='true only where the sensor is of kind "mqtt" with topics',
                got="true",
                hint="leave it out: other sensors hear no new devices",
            )
        if self.sensor.passes_on:
            raise refusal(
                *("sensor", "mode"),
                expected='"output"; only `submerge client` is a processor',
                got=shown(getattr(self.sensor, "mode", "processor")),
            )
        _ = self.client, self.aggregator

    def with_channels(self, accepted: Iterable[ChannelConfig]) -> BoxConfig:
        """Return the same with channels that were accepted since it was written."""
        # Those that it has by now, or that its sensor excludes, are passed over.
        listed = {each.name for each in self.schema.tables}
        takes, scaling = self.sensor.takes, self.schema.scaling
        new = tuple(
            ChannelConfig(name=each.name, unit=each.unit)
            if scaling == "none" or (scaling == "units" and each.step)
            else each
            for each in accepted
            if each.name not in listed and takes(each.name)
        )
        schema = replace(self.schema, channels=(*self.schema.channels, *new))
        return replace(self, schema=schema)

    @property
    def root(self) -> str:
        return f"{self.node}-{ROOT}"

    @property
    def client(self) -> ClientConfig:
        """The settings of the part that reads sensors."""
        both = {each.name for each in fields(ClientConfig)} & {each.name for each in fields(self)}
        return ClientConfig(
            **{name: getattr(self, name) for name in both - {"kit"}},
            parent=self.root,
            state=self.folder / "client.state",
            uplink=UplinkConfig(url=f"memory://{self.root}"),
            timing=ClientTiming(report_every_s=OFTEN_S),
            privacy=PrivacyConfig(rows=1),  # its parent is this program
        )

    @property
    def aggregator(self) -> AggregatorConfig:
        """The settings of the part that others may join."""
        group, listen = GroupConfig(summary=self.summary.shared, schema=self.schema), self.listen
        if listen.roster is None and listen.aggregators is None:
            listen = replace(listen, aggregators=())  # machines join it, and no other root
        # Gamma and landmarks of a kernel need more rows than scales do.
        soon = self.schema.learns_scaling and self.schema.features is None
        return AggregatorConfig(
            node=self.root,
            advanced=AdvancedConfig(scaling_rows=SCALED_FROM) if soon else AdvancedConfig(),
            store=self.folder / "root.db",
            kit=self.kit,
            listen=listen,
            groups={self.group: group},
            status=self.status,
            operators=self.operators,
            page=self.page,
            history=self.history,
            timing=AggregatorTiming(report_every_s=OFTEN_S, model_every_s=OFTEN_S),
            log=self.log,
        )


def load(path: Path | str, environ: Mapping[str, str]) -> BoxConfig:
    """Return the configuration in a file, with the environment's overrides."""
    return read(path, BoxConfig, environ, program="up")
