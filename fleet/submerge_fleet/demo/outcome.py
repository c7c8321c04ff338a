"""What a run of the demo is told, and what came of it: values, and nothing else."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace

from submerge import Array
from submerge_fleet.demo.accuracy import Accuracy
from submerge_fleet.demo.alarms import Raised
from submerge_fleet.demo.balance import Balance
from submerge_fleet.demo.failures import ProcessFailure
from submerge_fleet.demo.verdict import FaultVerdict

SETTLE_DAYS = 4.0
"""No fault before this, or before 2/7 of a shorter run: half to learn, half to measure."""


@dataclass(frozen=True, slots=True)
class DemoSettings:
    """What a run depends on, beside the machine and its clock.

    Attributes
    ----------
    seed, days, clients, rank
    seconds : float
        How long the days take, once every client has scored a row; raising it gives the
        model more time to follow, and the machine more time to rest.
    features : int
        Of a kernel; 0: the group is linear.
    """

    seed: int = 0
    days: float = 14.0
    clients: int = 8
    rank: int = 10
    seconds: float = 20.0
    features: int = 0

    @property
    def settle_days(self) -> float:
        """Days in good order, for learning and for measuring limits."""
        return min(SETTLE_DAYS, self.days * 2 / 7)


@dataclass(slots=True)
class History:
    """What the picture is drawn from: one entry a round.

    snapshot : where the round ends
    spe, spe_worst : median and largest SPE of its rows (NaN where none is known)
    multiple : (motes,) worst channel's residual over its limit, root mean square
    """

    snapshot: list[int] = field(default_factory=list)
    spe: list[float] = field(default_factory=list)
    spe_worst: list[float] = field(default_factory=list)
    multiple: list[Array] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Usage:
    """What one node has used.

    Attributes
    ----------
    node, role : str
    rows : int
        That it was given; 0 but for clients.
    sent_bytes, heard_bytes : int
        Of messages on its way to its parent, both directions.
    resident_bytes, peak_bytes : int
        Of its newest process when last looked at; the most that any of its processes held.
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
    """What came of a run.

    Attributes
    ----------
    wire : str
        How nodes reached one another.
    snapshots, values, gaps : int
        Fed; values that all rows have; those of learnt rows that were missing, and filled.
    unheard : int
        Learnt rows with gaps of which no score line told what they were taken for.
    rows_judged, rows_over_spe, rows_over_t2 : int
    raw_bytes : int
        What the readings would weigh, each value once, as float32.
    balance, accuracy, mishaps, usage, verdicts
    alarms : tuple of Raised
        Each of each client.
    rows_odd : int
        In a kernel group rows that both kinds of SPE together find odd: `odd` is above 1.
    linear : Accuracy or None
        In a kernel group `accuracy` is of the features, and this of the readings themselves.
    """

    settings: DemoSettings
    wire: str
    snapshots: int
    values: int
    gaps: int
    unheard: int
    rows_judged: int
    rows_over_spe: int
    rows_over_t2: int
    raw_bytes: int
    balance: Balance
    accuracy: Accuracy
    failures: tuple[ProcessFailure, ...]
    usage: tuple[Usage, ...]
    verdicts: tuple[FaultVerdict, ...]
    alarms: tuple[Raised, ...] = ()
    anomalous_rows: int = 0
    linear: Accuracy | None = None

    def count(self, outcome: str) -> int:
        """Return how many verdicts are `found`, `missed` or `false`."""
        return sum(verdict.outcome == outcome for verdict in self.verdicts)

    def of(self, role: str) -> list[Usage]:
        """Return what nodes of one role have used."""
        return [each for each in self.usage if each.role == role]

    def figures(self) -> dict[str, object]:
        """Return all figures, ready for JSON."""
        return asdict(replace(self, failures=())) | {
            "settings": asdict(self.settings) | {"settle_days": self.settings.settle_days},
            "failures": [failure.figures() for failure in self.failures],
            "found": self.count("found"),
            "missed": self.count("missed"),
            "false": self.count("false"),
            "alarms": [alarm.figures() for alarm in self.alarms],
            "verdicts": [verdict.figures() for verdict in self.verdicts],
        }
