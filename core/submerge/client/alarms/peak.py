"""AlarmPeak: how high the scores of an alarm went, for the block that it began in.

The rows of an open alarm raise no maximum: a fault is not normal. But most alarms are false that
end by themselves without a verdict. If the block that such an alarm began in counted as it was
when the alarm was raised, just over the limit, the limit could rise by no more than that, however
high scores go each morning: alarms were twice as frequent as promised (docs/decisions/0041).

So that block waits until the alarm has ended, and then counts with the highest score of the alarm,
by at most `blocks.BEYOND` over the limit. No machine can buy silence so: it is done only for
alarms that ended by themselves before their rows were learnt, that no person has judged, in groups
of `LEAST_NODES` nodes, and at each node for at most twice as many as were promised, and one.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from submerge.client.alarms.limits import AlarmLimits
from submerge.client.alarms.log import AlarmLog
from submerge.judge.decision import Mask
from submerge.stats.alarm_account import EACH, LEAST_NODES
from submerge.stats.block_maxima import By


class InAlarm(NamedTuple):
    """Which rows belong to an alarm.

    rows : (n,) of bool
    later : (n,) of bool, without the first row of each
    believed : whether an alarm that ends here counts as high as it went
    """

    rows: Mask
    later: Mask
    believed: bool = False

    @classmethod
    def of(cls, rows: Mask, *, was_open: bool, believed: bool) -> InAlarm:
        """was_open : whether the first row goes on with an alarm"""
        return cls(rows, rows & np.concatenate(([was_open], rows[:-1])), believed)


@dataclass(frozen=True, slots=True, eq=False)
class AlarmPeak:
    """What the block of an open alarm will count; empty while none is open.

    begun : The maxima of that block, as they were when the alarm was raised.
    highest : The highest statistics since then.
    """

    begun: Mapping[By, float] = field(default_factory=dict)
    highest: Mapping[By, float] = field(default_factory=dict)

    def __bool__(self) -> bool:
        return bool(self.begun or self.highest)

    def begun_with(self, highest: Mapping[By, float]) -> AlarmPeak:
        """Return it with the maxima of the block that the alarm began in, as far as they go."""
        return replace(self, begun=larger(self.begun, highest))

    def after(self, highest: Mapping[By, float]) -> AlarmPeak:
        """Return it after more statistics of the alarm."""
        return replace(self, highest=larger(self.highest, highest))

    def counted(self, highest: Mapping[By, float], *, high: bool) -> dict[By, float]:
        """Return the maxima of the block in which the alarm ended, with those of the alarm.

        high : whether the alarm counts as high as it went, or as it was raised
        """
        return larger(highest, self.begun, self.highest if high else {})


def larger(*maxima: Mapping[By, float]) -> dict[By, float]:
    """Return the largest of each kind."""
    kinds = dict.fromkeys(kind for each in maxima for kind in each)
    return {kind: max(each.get(kind, 0.0) for each in maxima) for kind in kinds}


def is_believed(log: AlarmLog, limits: AlarmLimits, allowed: float) -> bool:
    """Return whether the newest alarm counts as high as it went, if it ends now.

    allowed : false alarms that the settings allowed the node so far
    """
    if not log.alarms or limits.nodes < LEAST_NODES:
        return False
    alarm = log.alarms[0]
    short = log.held_s < log.max_withheld_s
    judged = alarm.verdict != "" or alarm.settled or alarm.cause == "stuck"
    unconfirmed = log.raised - log.confirmed
    return short and not judged and unconfirmed <= 1 + math.floor(EACH * allowed)
