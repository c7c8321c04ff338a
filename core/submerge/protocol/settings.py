"""Settings of nodes. Each says what it means, and what raising it does."""

from __future__ import annotations

import math
from dataclasses import dataclass, field

from submerge.condition import Condition
from submerge.errors import UsageError, whole
from submerge.protocol.names import NAME_RULE, is_name

MOST_ROWS = 64  # most rows that decide on an alarm: each of them is remembered


@dataclass(frozen=True, slots=True)
class AlarmSettings:
    """When a client raises an alarm, and what it then does.

    Attributes
    ----------
    at_most_per_s : float
        False alarms of this node, a second; 0 if `at_most_per_row` says it. A higher rate raises
        alarms sooner, and for less.
    after, of : int
        `after` of the last `of` rows have to be over the limit, one by the moving average. A
        greater share is surer, and misses faults that come and go; more rows are slower.
    settle_s : float
        Time from the group's first scores until a limit is more than provisional. More arms
        later, with limits that hold better.
    max_withheld_s : float
        How long an alarm keeps its rows from being learnt, unless a person decides. More keeps
        a lasting fault out of the model for longer, and a new normal state as well. 0 withholds
        none, as where a history is measured.
    period_s : float
        Time that a row stands for; 0 goes by the clock.
    at_most_per_row : float
        False alarms of this node, a row; 0 if `at_most_per_s` says it.
    """

    at_most_per_s: float = 1 / 604800
    after: int = 5
    of: int = 8
    settle_s: float = 3 * 86400.0
    max_withheld_s: float = 86400.0
    period_s: float = 0.0
    at_most_per_row: float = 0.0

    def __post_init__(self) -> None:
        often = self.at_most_per_row or self.at_most_per_s
        if not isinstance(often, int | float) or not 0 < often < math.inf:
            raise UsageError(f"at_most_per_s must be a positive rate, got {often!r}")
        whole("of", self.of, least=1, most=MOST_ROWS)
        whole("after", self.after, least=1, most=self.of)
        _check_times(self, "settle_s")
        for name in ("max_withheld_s", "period_s"):
            if getattr(self, name) != 0:
                _check_times(self, name)

    def often_per_s(self, row_s: float) -> float:
        """Return the allowed false alarms a second; 0 while it is not known how long a row is."""
        if not self.at_most_per_row:
            return self.at_most_per_s
        row_s = self.period_s or row_s
        return self.at_most_per_row / row_s if row_s else 0.0


@dataclass(frozen=True, slots=True)
class ClientSettings:
    """Settings of a client.

    Attributes
    ----------
    node, group, parent : str
        Its name; the group that shares its schema; the node that it reports to.
    learns_scaling : bool
        The fleet computes center and scale; until then a client only gathers moments.
    offsets : tuple of float
        What stands for channels that have no value yet, meanwhile; NaN where their rows wait.
    report_every_s : float
        More makes the model older, less costs bytes. Each wait varies by 20 %.
    checkpoint_every_s : float
        More loses more readings in a crash, less wears the card.
    min_rows : int
        Rows before the first report; more reveals less of single rows, and delays it.
    together : int
        Rows that are learnt at once: two summaries differ by so many, or more. More reveals less
        of single rows, and lets the newest wait for longer.
    turned_by : float
        Degrees by which the subspace may turn before a report is sent early.
    min_turned_rows : int
        Least rows between two checks of that; of up to 300 dimensions, as many rows.
    patience_s, cap_s : float
        How long an answer may take; the longest wait between two tries.
    finals : int
        Most final reports of earlier incarnations that wait; the oldest is dropped first.
    fills_gaps : bool
        A row with half of its channels or more is learnt and scored; each gap gets its most
        likely value. Otherwise a row with a gap is withheld.
    alarms : AlarmSettings or None
        None raises no alarms, and learns every row.
    lags : int
        Rows in a vector, the newest first: a channel is all its copies.
    learn_when : Condition or None
        Rows for which it does not hold are neither learnt nor scored.
    share_points : int
        Rows that may leave it as they are in 24 hours: said when it joins, so that parents log it.
    """

    node: str
    group: str
    parent: str
    learns_scaling: bool = False
    offsets: tuple[float, ...] = ()
    report_every_s: float = 300.0
    checkpoint_every_s: float = 240.0
    min_rows: int = 1
    together: int = 1
    turned_by: float = 15.0
    min_turned_rows: int = 64
    patience_s: float = 10.0
    cap_s: float = 300.0
    finals: int = 4
    fills_gaps: bool = False
    alarms: AlarmSettings | None = field(default_factory=AlarmSettings)
    learn_when: Condition | None = None
    lags: int = 1
    share_points: int = 0

    def __post_init__(self) -> None:
        check_names(self.node, self.group, self.parent)
        _check_times(self, "report_every_s", "checkpoint_every_s", "patience_s", "cap_s")
        for name in ("min_rows", "together", "min_turned_rows", "finals"):
            whole(name, getattr(self, name), least=1)


@dataclass(frozen=True, slots=True)
class AggregatorSettings:
    """Settings of an aggregator.

    Attributes
    ----------
    node : str
    parent : str or None
        None makes it the root.
    report_every_s, patience_s, cap_s : float
        As for a client.
    model_every_s : float
        Least time between two models of a root.
    seal_after_s : float
        Silence after which a row is sealed, if its node reports under another incarnation.
    max_age_s : float
        The greatest age of a report that is believed.
    scaling_rows : int
        Readings whose moments a root waits for before it settles center, scale and gamma.
    bounds_after_s : float
        How long a node has to be heard before its row rate bounds others. More bounds a young
        group later, by rates that are more certain.
    """

    node: str
    parent: str | None
    report_every_s: float = 300.0
    model_every_s: float = 60.0
    seal_after_s: float = 3600.0
    max_age_s: float = 30 * 86400.0
    scaling_rows: int = 1000
    bounds_after_s: float = 86400.0
    patience_s: float = 10.0
    cap_s: float = 300.0

    def __post_init__(self) -> None:
        check_names(self.node, *(() if self.parent is None else (self.parent,)))
        _check_times(self, "report_every_s", "model_every_s", "seal_after_s", "max_age_s")
        _check_times(self, "patience_s", "cap_s", "bounds_after_s")
        whole("scaling_rows", self.scaling_rows, least=1)


def check_names(*names: str) -> None:
    """Refuse a name that is no `NAME`, and a node that is its own parent."""
    for name in names:
        if not is_name(name):
            raise UsageError(f"a name has {NAME_RULE}, got {name!r}")
    if names[0] in names[-1:] and len(names) > 1:
        raise UsageError(f"a node cannot be its own parent, got {names[0]!r} for both")


def _check_times(settings: object, *names: str) -> None:
    """Refuse times with which a node would spin, or wait for ever."""
    for name in names:
        seconds = getattr(settings, name)
        if not isinstance(seconds, int | float) or not 0 < seconds < math.inf:
            raise UsageError(f"{name} must be a positive time in seconds, got {seconds!r}")
