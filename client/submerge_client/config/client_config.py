"""ClientConfig: all settings of a client, from one TOML file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta
from msgspec.structs import asdict

from submerge import Schema
from submerge.condition import Condition
from submerge.protocol.settings import ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge_client.config.alarms import AlarmsConfig, BrokerConfig, LearnConfig
from submerge_client.config.links import Link, RetryConfig, UplinkConfig
from submerge_client.config.removed import CLIENT
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sections import (
    Name,
    NodeName,
    NotBelowZero,
    Seconds,
    Section,
    Spare,
    Whole,
    placed,
    refusal,
    shown,
)
from submerge_client.config.sensors import AnySensor
from submerge_client.config.sizes import check_join, check_size, size_of_report
from submerge_client.config.summary import LearntSummary, check_rank
from submerge_client.config.tomlfile import read

MOST_JOB_ROWS = 100_000
JobRows = Annotated[
    int, Meta(ge=0, le=MOST_JOB_ROWS, description=f"a whole number from 0 to {MOST_JOB_ROWS}")
]

Rows = Annotated[int, Meta(ge=1, le=1000, description="a whole number from 1 to 1000")]

MOST_SHARED = 1_000_000
SharedPerDay = Annotated[
    int, Meta(ge=0, le=MOST_SHARED, description=f"a whole number from 0 to {MOST_SHARED}")
]


class ClientTiming(Section, frozen=True, kw_only=True):
    """How often a client reports, and writes its checkpoint.

    report_every_s : Seconds between reports, give or take 20 %. Raising it makes the model staler,
        lowering it costs bytes.
    checkpoint_every_s : Seconds between writes to `state`. Raising it loses more readings in a
        crash, lowering it wears the card.
    min_rows : Rows before the first report.
    gather_s : How long rows that come faster than that may wait to be handled together. Raising it
        costs less processor time, and scores later; 0 handles each row as it comes. With metrics of
        Telegraf, how long a row waits for its lines.
    """

    report_every_s: Seconds = 300.0
    checkpoint_every_s: Seconds = 240.0
    min_rows: Whole = 1
    gather_s: NotBelowZero = 1.0


class PrivacyConfig(Section, frozen=True, kw_only=True):
    """What others can learn of single rows.

    rows : So many rows are learnt together, or more: no report tells fewer apart. Raising it
        reveals less of each, and lets the newest wait for longer; 1 learns each row as it comes.
    masked : Whether it takes part in masked jobs alone, of which no one sees a sum of fewer than
        five nodes. It needs a kit, and cryptography.
    """

    rows: Rows = 8
    masked: bool = False


class ScoresConfig(Section, frozen=True, kw_only=True):
    """Where scores of this node's readings go.

    to : "none"; "stdout", a line of JSON for each row; "mqtt", under
        submerge/v1/{fleet}/score/{node}.
    contributions : Channels that are named with each score, those with the largest shares.
    broker : Another broker than the uplink's.
    """

    to: Literal["none", "stdout", "mqtt"] = "none"
    contributions: Spare = 3
    broker: BrokerConfig | None = None

    def link(self, uplink: UplinkConfig) -> UplinkConfig:
        if self.broker is not None:
            return self.broker.beside(uplink)
        if uplink.scheme in ("grpc", "grpcs"):
            raise refusal(
                "to",
                expected="[scores.broker] with the url of a broker",
                got=f"nothing, and {uplink.scheme}:// in [uplink]",
            )
        return uplink


class WatchConfig(Section, frozen=True, kw_only=True):
    """How systemd, or a container's health check, sees that the program works.

    silence_s : How long the sensor may give no row before the program counts as stuck and systemd
        restarts it. Raising it allows a slower sensor, and finds a dead one later. Left out, 600
        (7200 with `topics`), or ten of the sensor's periods if that is more.
    alive : A file that is touched every 15 s as long as the program is not stuck.
    """

    silence_s: Seconds | None = None
    alive: Path | None = None


class ClientConfig(Section, frozen=True, kw_only=True):
    """All settings of a client.

    node : This device's name: it never changes, is unique, and is the name in its certificate. Left
        out, its kit's.
    group : The nodes that share a schema and a model with it.
    parent : The aggregator that it reports to.
    state : A file for restarts: the newest model and unreported readings, a few kilobytes.
    kit : Key, certificate and authority in one file, as `submerge pki issue` writes it, for links
        with TLS that name no files of their own.
    uplink : UplinkConfig
    schema : SchemaConfig
    sensor : Where readings come from: one kind.
    summary : LearntSummary
    timing : ClientTiming
    privacy : PrivacyConfig
    learn : LearnConfig
    alarms : AlarmsConfig
    gaps : A row with a gap: fill it with the most likely value, or do not learn the row.
    scores : ScoresConfig
    share_values : Whether operators at an aggregator above may look at its newest readings, in
        their units. They leave the node only while a person looks.
    job_rows : Most rows that are held in memory for jobs, a uniform sample of what is learnt: 8
        bytes for each channel of each. Raising it makes their answers better and takes memory; 0
        takes no part in jobs.
    share_points : Most of these rows that may leave the node as they are in 24 hours, as points
        that a job or the group's landmarks take. They can be read by every aggregator above and by
        all members of the group. Raising it makes the points better; with 0 no row leaves the node
        as it is.
    watch : WatchConfig
    log : The least level of a log line.
    advanced : For tests, the demo and benchmarks; not in the sample.
    """

    node: Name
    group: Name
    parent: NodeName
    state: Path
    kit: Path | None = None
    uplink: UplinkConfig
    schema: SchemaConfig
    sensor: AnySensor
    summary: LearntSummary = LearntSummary()
    timing: ClientTiming = ClientTiming()
    privacy: PrivacyConfig = PrivacyConfig()
    learn: LearnConfig = LearnConfig()
    alarms: AlarmsConfig = AlarmsConfig()
    gaps: Literal["fill", "withhold"] = "fill"
    scores: ScoresConfig = ScoresConfig()
    share_values: bool = False
    job_rows: JobRows = 256
    share_points: SharedPerDay = 0
    watch: WatchConfig = WatchConfig()
    log: Literal["debug", "info", "warning", "error"] = "info"
    advanced: RetryConfig = RetryConfig()

    def __post_init__(self) -> None:
        if self.parent == self.node:
            raise refusal("parent", expected="another node", got=shown(self.node))
        check_rank(self.summary, self.schema)
        self._check_sizes()
        self._check_topics()
        self._check_silence()
        self._check_stdout()
        if self.scores.to == "mqtt":
            _ = self.scores_link
        self._check_discovery()
        _ = self.settings

    def _check_sizes(self) -> None:
        """Refuse settings whose reports or join are too large."""
        at, limit = ("uplink", "max_message_bytes"), self.uplink.limit
        features = "" if self.schema.features is None else "schema.features.features, "
        raised = ", or raise it as far as the other end does"
        check_size(
            self.schema.dim,
            self.summary.kept,
            limit,
            at=at,
            lower=f"{features}schema.lags, {self.summary.widest} or summary.oversample{raised}",
            linear=self.summary.linear(self.schema),
        )
        # Built only now, when the dimensions are known to fit.
        check_join(self.schema.text_bytes, limit, at=at, lower=self.schema.lengthy + raised)

    def _check_topics(self) -> None:
        for i, channel in enumerate(self.schema.sensed):
            wrong = self.sensor.wrong_with(channel.name)
            if wrong:
                raise refusal("schema", "channels", i, expected=wrong, got=shown(channel.name))

    def _check_discovery(self) -> None:
        if self.alarms_link is not None and self.alarms.discovery and "." in self.node:
            raise refusal(
                *("alarms", "discovery"),
                expected='"", for Home Assistant finds nothing whose name has a dot',
                got=f"{shown(self.alarms.discovery)}, and the node {shown(self.node)}",
                hint='say discovery = "", or give the node another name',
            )

    def _check_silence(self) -> None:
        if self.silence_s <= self.period_s:
            raise refusal(
                *("watch", "silence_s"),
                expected=f"more than the sensor's period of {self.period_s:g} s",
                got=f"{self.silence_s:g}",
                hint="raise it, or leave it out",
            )
        if self.silence_s <= self.timing.gather_s:
            raise refusal(
                *("timing", "gather_s"),
                expected=f"less than the {self.silence_s:g} s after which the sensor is silent",
                got=f"{self.timing.gather_s:g}",
            )

    def _check_stdout(self) -> None:
        """Refuse lines of JSON on the standard output that is for metrics."""
        reader, kind = self.sensor.output_reader, type(self.sensor).__struct_config__.tag
        if not reader:
            return
        for keys, value, hint in (
            (("scores", "to"), self.scores.to, 'to = "none"'),
            (("alarms", "ndjson"), self.alarms.ndjson, "name a file"),
        ):
            if value in ("stdout", "-"):
                raise refusal(
                    *keys,
                    expected=f'another place: with sensor.kind = "{kind}" {reader} reads'
                    " standard output",
                    got=shown(value),
                    hint=f"say {hint}; a processor writes scores as metrics",
                )

    @property
    def period_s(self) -> float:
        """Seconds between rows, if the sensor has a period; else 0."""
        return self.sensor.every_s

    @property
    def silence_s(self) -> float:
        """Seconds without a row after which the program counts as stuck."""
        if self.watch.silence_s is not None:
            return self.watch.silence_s
        return max(self.sensor.silence_s, 10 * self.period_s)

    @property
    def settings(self) -> ClientSettings:
        timing = {**asdict(self.timing), **asdict(self.advanced)}
        del timing["gather_s"]  # the agent's: its node knows of no waiting rows
        return ClientSettings(
            self.node,
            self.group,
            self.parent,
            learns_scaling=self.schema.learns_scaling,
            offsets=self.schema.offsets,
            lags=self.schema.lags,
            fills_gaps=self.gaps == "fill",
            alarms=self.alarms.settings(self.learn, self.period_s),
            learn_when=self._learn_when,
            share_points=self.share_points,
            together=self.privacy.rows,
            **timing,
        )

    @property
    def _learn_when(self) -> Condition | None:
        with placed("learn"):
            return self.learn.condition(self.schema)

    @property
    def summaries(self) -> Subspaces:
        return self.summary.summaries

    @property
    def built_schema(self) -> Schema:
        """The schema of its vectors, lags included. It reads landmarks from their file."""
        with placed("schema"):
            return self.schema.built

    @property
    def takes_kit(self) -> bool:
        """Whether a link has TLS by the node's kit."""
        scores = self.scores.to == "mqtt" and self.scores_link.takes_kit
        alarms = self.alarms_link is not None and self.alarms_link.takes_kit
        return self.uplink.takes_kit or scores or alarms

    @property
    def scores_link(self) -> UplinkConfig:
        """The broker for scores, if they go to one."""
        with placed("scores"):
            return self.scores.link(self._broker)

    @property
    def alarms_link(self) -> UplinkConfig | None:
        with placed("alarms"):
            return self.alarms.link(self._broker)

    @property
    def _broker(self) -> UplinkConfig:
        """The uplink; where it is no broker, that of the sensor, if there is one."""
        link = self.sensor.link
        if link is None or not link.is_broker or self.uplink.is_broker:
            return self.uplink
        settings = {name: getattr(link, name) for name in Link.__struct_fields__}
        return BrokerConfig(**settings).beside(self.uplink)

    @property
    def largest_report(self) -> int:
        dim = self.schema.dim
        linear = self.summary.linear(self.schema)
        return size_of_report(dim, min(self.summary.kept, dim), linear=linear)


def load(path: Path | str, environ: Mapping[str, str]) -> ClientConfig:
    """Return the configuration in a file, with the environment's overrides; or a mistake."""
    return read(path, ClientConfig, environ, program="client", removed=CLIENT)
