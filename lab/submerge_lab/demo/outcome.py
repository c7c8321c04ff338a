"""Settings of a demo run and its results, as plain values."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from submerge import Array
from submerge_lab.demo.accuracy import Accuracy
from submerge_lab.demo.alarms import RaisedAlarm
from submerge_lab.demo.balance import Balance
from submerge_lab.demo.failures import ProcessFailure
from submerge_lab.demo.verdict import AlarmCounts, FaultVerdict, count_alarms

WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
SETTLE_DAYS = 4.0
"""Days without faults (2/7 of a shorter run): half to learn, half to measure limits."""


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """Settings of a run.

    Attributes
    ----------
    seed, days, clients, rank
    seconds : float
        Duration of the run, once every client has scored a row; raising it gives the model more
        time to follow and loads the machine less.
    features : int
        Kernel features; 0: the group is linear.
    """

    seed: int = 0
    days: float = 14.0
    clients: int = 8
    rank: int = 10
    seconds: float = 20.0
    features: int = 0

    @property
    def settle_days(self) -> float:
        """Days without faults, for learning and for measuring limits."""
        return min(SETTLE_DAYS, self.days * 2 / 7)


@dataclass(slots=True)
class DemoHistory:
    """The data of the picture: one entry for each round.

    snapshot : where the round ends
    spe, spe_worst : median and largest squared prediction error (SPE) of its rows; NaN if unknown
    multiple : (motes,) worst channel's residual over its limit, root mean square
    """

    snapshot: list[int] = field(default_factory=list)
    spe: list[float] = field(default_factory=list)
    spe_worst: list[float] = field(default_factory=list)
    multiple: list[Array] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Usage:
    """Traffic and memory of one node.

    rows : Rows that a client was given; 0 for other nodes.
    sent_bytes, heard_bytes : Messages to and from its parent.
    resident_bytes, peak_bytes : Of its newest process when last measured; the peak of all its
        processes.
    """

    node: str
    role: str
    rows: int
    sent_bytes: int
    heard_bytes: int
    resident_bytes: int
    peak_bytes: int


@dataclass(frozen=True, slots=True)
class DemoOutcome:
    """Results of a run.

    wire : How nodes were connected.
    snapshots, values, gaps : Snapshots fed; values in all rows; missing values of learnt rows,
        which were filled.
    rows_judged, rows_over_spe, rows_over_t2 : Rows scored after the settling time; those over the
        fleet's 99.9 % limit of SPE, of T2.
    raw_bytes : Size of all readings as float32, each value once.
    anomalous_rows : In a kernel group, rows whose anomaly score is above 1.
    linear : In a kernel group `accuracy` is of the features, and this of the readings.
    """

    settings: DemoSettings
    wire: str
    snapshots: int
    values: int
    gaps: int
    rows_judged: int
    rows_over_spe: int
    rows_over_t2: int
    raw_bytes: int
    balance: Balance
    accuracy: Accuracy
    failures: tuple[ProcessFailure, ...]
    usage: tuple[Usage, ...]
    verdicts: tuple[FaultVerdict, ...]
    alarms: tuple[RaisedAlarm, ...] = ()
    anomalous_rows: int = 0
    linear: Accuracy | None = None

    def count(self, outcome: str) -> int:
        """Return how many verdicts have this outcome: `found`, `missed` or `false`."""
        return sum(verdict.outcome == outcome for verdict in self.verdicts)

    @property
    def alarm_counts(self) -> AlarmCounts:
        """How many alarms clients raised, and how many of them belong to faults."""
        return count_alarms(self.verdicts, self.alarms)

    def of(self, role: str) -> list[Usage]:
        """Return the usage of all nodes of one role."""
        return [each for each in self.usage if each.role == role]

    def figures(self) -> dict[str, object]:
        """Return all figures for JSON."""
        return asdict(replace(self, failures=())) | {
            "settings": asdict(self.settings) | {"settle_days": self.settings.settle_days},
            "failures": [failure.figures() for failure in self.failures],
            "found": self.count("found"),
            "missed": self.count("missed"),
            "false": self.count("false"),
            "alarms": [alarm.figures() for alarm in self.alarms],
            "alarm_counts": self.alarm_counts._asdict(),
            "verdicts": [verdict.figures() for verdict in self.verdicts],
        }
