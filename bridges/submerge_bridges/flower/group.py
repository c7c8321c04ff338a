"""FlowerGroup: what the clients and the server of one app agree on.

Both sides build the same one from the same values, as both sides of a Flower app share a module.
The root refuses a client whose channels differ.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal

from submerge import Schema, UsageError
from submerge.aggregator.plan import GroupPlan
from submerge.errors import whole
from submerge.protocol.settings import AggregatorSettings, AlarmSettings, ClientSettings
from submerge.schema import Center
from submerge_aggregator.config import GroupConfig
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sizes import GRPC_LIMIT, check_size
from submerge_client.config.summary import SummaryConfig

ROOT = "flower"
"""The name of the root."""

FINALS = 64
"""Most rounds of a client that may wait for an answer; with so many, it takes no more rows."""

MODEL_EVERY_S = 1e-3
"""A round is a model: the root need not wait for more."""


@dataclass(frozen=True)
class FlowerGroup:
    """What a group learns, for `client_app` and for `SubmergeStrategy`.

    Attributes
    ----------
    name : str
        Of the group.
    channels : tuple of str
        "name" or "name [unit]", in the order of the rows' columns.
    rank : int or "auto"
        Directions of normal variation that SPE and T2 are of, below the number of channels. With
        "auto" the root chooses it, up to `rank_max`.
    rank_max, oversample : int
        The highest rank to choose; spare directions, which make merges more exact.
    scaling : {"fleet", "none"}
        With "fleet" the root computes each channel's mean and deviation, once all clients together
        have `scaling_rows` rows; with "none" rows are learnt in their units.
    center : {"fleet", "own", "none"}
        What is subtracted: one mean of all clients, each client's own, or nothing.
    scaling_rows : int
        Rows that settle the scaling. Raising it waits longer, for a surer scale.
    robust : bool
        Leave out clients that are far from the others.
    bounds : bool
        Whether a client counts for no more than an honest one that was heard for as long could.
    period_s : float
        Time that a row stands for. With it clients judge their rows as those of a fleet do: the
        model has alarm limits, which `submerge detect` and `submerge.Model` need, and what belongs
        to an alarm is withheld, and counted so. With 0 every row is learnt.
    fills_gaps : bool
        Learn a row that has half of its channels or more; otherwise a row with NaN is withheld.

    Raises
    ------
    UsageError
        If a value is wrong, when the group is made.
    """

    name: str
    channels: tuple[str, ...]
    rank: int | Literal["auto"] = "auto"
    rank_max: int = 16
    oversample: int = 5
    scaling: Literal["fleet", "none"] = "fleet"
    center: Center = "fleet"
    scaling_rows: int = 1000
    robust: bool = False
    bounds: bool = True
    period_s: float = 0.0
    fills_gaps: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "channels", tuple(self.channels))
        if self.rank != "auto":
            whole("rank", self.rank, least=1)
        if self.scaling not in ("fleet", "none"):
            raise UsageError(f'scaling must be "fleet" or "none", got {self.scaling!r}')
        _ = self.plan, self.root_settings, self.client_settings("n")
        kept, text = self._summary_config.kept, self._schema_config.text_bytes
        lower = "rank_max, oversample or the number of channels"
        check_size(self.width, kept, GRPC_LIMIT, at=("channels",), lower=lower, text=text)

    @cached_property
    def plan(self) -> GroupPlan:
        """The group as the root serves it; its schema and summaries are the clients', too."""
        summary = self._summary_config
        schema = self._schema_config
        bounds: Literal["on", "off"] = "on" if self.bounds else "off"
        return GroupConfig(summary=summary, schema=schema, robust=self.robust, bounds=bounds).plan

    @cached_property
    def schema(self) -> Schema:
        """What rows mean; a scaling of the fleet is open."""
        return self._schema_config.built

    @property
    def _summary_config(self) -> SummaryConfig:
        rank_max = self.rank_max if self.rank == "auto" else self.rank
        # A rank is below the number of channels; spare directions may be all of them.
        most = max(1, min(rank_max, len(self.channels) - 1))
        return SummaryConfig(rank=self.rank, rank_max=most, oversample=self.oversample)

    @property
    def _schema_config(self) -> SchemaConfig:
        return SchemaConfig(channels=self.channels, scaling=self.scaling, center=self.center)

    @property
    def width(self) -> int:
        """Channels, and so columns of the rows."""
        return len(self.channels)

    @property
    def root_settings(self) -> AggregatorSettings:
        """Settings of the root."""
        rows = self.scaling_rows
        return AggregatorSettings(ROOT, None, model_every_s=MODEL_EVERY_S, scaling_rows=rows)

    def client_settings(self, node: str) -> ClientSettings:
        """Return the settings of a client."""
        alarms = AlarmSettings(period_s=self.period_s) if self.period_s else None
        return ClientSettings(
            *(node, self.name, ROOT),
            learns_scaling=self.scaling == "fleet",
            finals=FINALS,
            fills_gaps=self.fills_gaps,
            alarms=alarms,
        )


def node_name(node_id: int) -> str:
    """Return the name that a Flower node has in the group."""
    return f"flower-{node_id}"
