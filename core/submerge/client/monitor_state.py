"""MonitorState: what a node's monitor keeps for the node's next process."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from submerge._linalg import Array
from submerge.client.alarms.detector import ChannelState, DetectorState, SilentChannels
from submerge.client.alarms.new_level import NewLevel
from submerge.pca.own_scatter import OwnScatter
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.messages import Model
from submerge.schema import Schema
from submerge.stats.departures import Departures
from submerge.stats.duty import DutyCycles
from submerge.stats.node_mean import OwnMean
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.resolution import Resolution
from submerge.stats.stuck import Habits, RunLengths


@dataclass(frozen=True, slots=True, eq=False)
class MonitorState:
    """What a monitor keeps for the node's next process, under one schema."""

    fingerprint: str
    own: OwnMean | None  # if center = "own", or once an alarm has settled
    detector: DetectorState
    desired: DesiredState
    reference: Model | None = None  # that the open alarm is held to while its rows are learnt
    held: OwnMean | None = None  # the mean of `reference`
    run_lengths: RunLengths | None = None
    habits: Habits | None = None
    residual_scale: ResidualScale | None = None
    level: NewLevel | None = None  # where the rows of the open alarm are
    # (channels,), scaled: how far alarms that settled have moved the node's level. It is subtracted
    # before rows are learnt, for what no person judged does not move the group's model.
    offset: Array | None = None
    resolution: Resolution | None = None
    scatter: OwnScatter | None = None  # if center = "own" and the group is narrow
    silences: SilentChannels | None = None
    unsure: Array | None = None  # (channels,): noise of channels that came late, scaled variances
    duty: DutyCycles | None = None
    departures: Departures | None = None

    def of_node(self, node: str) -> MonitorState:
        """Return what stays valid if the node has another name now."""
        if self.desired.node == node:
            return self
        return replace(self, desired=DesiredState(node, 0), detector=DetectorState())

    def of_schema(self, schema: Schema, channels: int) -> MonitorState:
        """Return what stays valid under a schema; the record's width is compared with it here."""
        if self.fingerprint != schema.fingerprint:
            # Scores of another schema mean something else: only the alarms stay.
            detector = self.detector.under_another_schema
            return MonitorState(schema.fingerprint, no_mean(schema), detector, self.desired)
        kept, none = self, no_rows(schema)
        if self.offset is not None and len(self.offset) != schema.width:
            kept = replace(kept, offset=None)
        own = no_mean(schema) if kept.offset is None else none
        if own is None or self.own is None or not self.own.is_like(own):
            kept = replace(kept, own=own)
        level = None if self.level is None else (self.level.mean, self.level.half or none)
        if level is not None and not all(each.is_like(none) for each in level):
            kept = replace(kept, level=None)
        if kept.channels is None or kept.channels.widths != {channels}:
            kept = replace(kept, run_lengths=None, habits=None, residual_scale=None)
        if self.unsure is not None and len(self.unsure) != schema.width:
            kept = replace(kept, unsure=None)
        for name in ("resolution", "silences", "duty", "departures"):
            part = getattr(self, name)
            if part is not None and len(part[0]) != channels:
                gone: Any = {name: None}
                kept = replace(kept, **gone)
        if self.scatter is not None and len(self.scatter.sums) != schema.width:
            kept = replace(kept, scatter=None)
        if self.held is not None and (own is None or not self.held.is_like(own)):
            kept = replace(kept, reference=None, held=None)
        return kept

    @property
    def channels(self) -> ChannelState | None:
        """The behaviour of its channels, if all parts of it are known."""
        if self.run_lengths is None or self.habits is None or self.residual_scale is None:
            return None
        return ChannelState(self.run_lengths, self.habits, self.residual_scale)


def no_mean(schema: Schema) -> OwnMean | None:
    """Return the mean of a node without readings; None if the group has one mean."""
    return no_rows(schema) if schema.center == "own" else None


def no_rows(schema: Schema) -> OwnMean:
    return OwnMean.none(schema.width, None if schema.linear else schema.dim)
