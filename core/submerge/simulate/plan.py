"""What a simulated fleet looks like, and what is done to it.

A `Plan` is the fleet: how many, how deep, how often. `Faults` are rates; a preset is one
set of them, or a distribution over them that each seed draws from. All times are virtual
seconds; an event's rate is per host and hour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np

from submerge.features import FeatureMap


@dataclass(frozen=True, slots=True)
class Faults:
    """How much goes wrong, until the fleet is healed.

    Attributes
    ----------
    loss, duplicate, reorder : float
        Shares of messages that vanish, come twice, or are held up for minutes.
    delay_s : float
        Mean time of a message on its way.
    broker : float
        Share of parents that listen on a shared broker, which keeps the last message of each
        topic and says all of it again when somebody (re)subscribes.
    redeliver : float
        How often a broker says everything again for no reason.
    partition, outage_s : float
        How often a host is cut off, and for how long on average.
    slow, slow_s : float
        How often a parent becomes slow, and by how many seconds a message.
    kill, down_s : float
        How often a process dies, and how long it is gone on average.
    kill_between : float
        Chance to die after any single effect.
    failed_write : float
        Share of writes that fail.
    card_lost, card_back : float
        How often a client's disk is empty, or an old copy, when it restarts.
    store_lost, store_back : float
        Likewise an aggregator's.
    root_lost, root_back : float
        Likewise the root's.
    card_clone, store_clone : float
        How often a second process starts from a copy of a client's card or an aggregator's
        store, beside the first.
    move : float
        How often a node is given another parent.
    late : float
        Share of machines that are switched on up to an hour after the first.
    clock : float
        How often a clock is set wrong by up to years.
    forget : float
        How often an operator has a client forgotten.
    twin : float
        How often a client's machine is copied with its memory, as virtual ones are: two
        processes go on with one life.
    """

    loss: float = 0.0
    duplicate: float = 0.0
    reorder: float = 0.0
    delay_s: float = 0.05
    broker: float = 0.0
    redeliver: float = 0.0
    partition: float = 0.0
    outage_s: float = 1800.0
    slow: float = 0.0
    slow_s: float = 20.0
    kill: float = 0.0
    down_s: float = 120.0
    kill_between: float = 0.0
    failed_write: float = 0.0
    card_lost: float = 0.0
    card_back: float = 0.0
    store_lost: float = 0.0
    store_back: float = 0.0
    root_lost: float = 0.0
    root_back: float = 0.0
    card_clone: float = 0.0
    store_clone: float = 0.0
    move: float = 0.0
    late: float = 0.0
    clock: float = 0.0
    forget: float = 0.0
    twin: float = 0.0

    @property
    def harms_disks(self) -> bool:
        """Whether something other than network and processes goes wrong."""
        return any(getattr(self, name) for name in DISKS)

    @property
    def network_only(self) -> bool:
        """Whether nothing but messages suffers: then nothing may be missing in the end."""
        processes = self.kill, self.kill_between, self.failed_write, self.twin
        return not (self.harms_disks or any(processes))


SHARES = ("loss", "duplicate", "reorder", "broker", "kill_between", "failed_write", "late")
"""Fields that are shares; of the others, those in `_s` are times, the rest are rates."""

DISKS = (
    *("card_lost", "card_back", "store_lost", "store_back", "root_lost", "root_back"),
    *("card_clone", "store_clone", "move", "forget"),
)

MOST = Faults(
    loss=0.3,
    duplicate=0.3,
    reorder=0.2,
    delay_s=2.0,
    broker=1.0,
    redeliver=1.0,
    partition=0.5,
    outage_s=3600.0,
    slow=0.2,
    slow_s=40.0,
    kill=0.5,
    down_s=900.0,
    kill_between=0.005,
    failed_write=0.03,
    card_lost=0.15,
    card_back=0.2,
    store_lost=0.06,
    store_back=0.1,
    root_lost=0.1,
    root_back=0.15,
    card_clone=0.1,
    store_clone=0.3,
    move=0.15,
    late=0.5,
    clock=0.1,
    forget=0.03,
)
"""The worst that swarm-1 draws."""

NETWORK = (
    *("loss", "duplicate", "reorder", "delay_s", "broker", "redeliver", "partition"),
    *("outage_s", "slow", "slow_s", "late"),
)


def _drawn(rng: np.random.Generator, names: tuple[str, ...]) -> Faults:
    """Each kind: absent, a little, or up to its worst, one third each."""
    strengths = {}
    for name in names:
        most = getattr(MOST, name)
        kind = rng.integers(3)
        share = 0.0 if kind == 0 else rng.random() * (0.2 if kind == 1 else 1.0)
        strengths[name] = most * (share if name not in LENGTHS else 0.05 + rng.random())
    return Faults(**strengths)


LENGTHS = ("delay_s", "outage_s", "slow_s", "down_s")
"""How long, not how often: never none."""

ALL = tuple(field.name for field in fields(Faults) if field.name != "twin")
"""But for what no honest fleet does: clients are then to be quarantined."""

PRESETS: dict[str, Callable[[np.random.Generator], Faults]] = {
    "none": lambda _: Faults(),
    "network": lambda rng: _drawn(rng, NETWORK),
    "kills": lambda rng: _drawn(rng, (*NETWORK, "kill", "down_s", "kill_between", "failed_write")),
    "copies": lambda rng: replace(
        _drawn(rng, (*NETWORK, "kill", "down_s", "card_back", "store_back")),
        # Half of what is said is lost: two processes of one store then find out late.
        loss=0.5 * rng.random(),
        card_clone=0.3 * rng.random(),
        store_clone=2.0 * rng.random(),
    ),
    "twins": lambda rng: replace(
        _drawn(rng, (*NETWORK, "kill", "down_s", "clock")), twin=0.05 + 0.3 * rng.random()
    ),
    "swarm-1": lambda rng: _drawn(rng, ALL),
}


@dataclass(frozen=True, slots=True)
class Plan:
    """A fleet, and how long it runs.

    Attributes
    ----------
    nodes, fan_in, depth : int
        Clients; children of an aggregator; levels of aggregators, the root included.
    hours : float
        How long sensors run and faults happen; then all is healed and comes to rest.
    reading_every_s, report_every_s : float
        Of clients; aggregators report at the same pace.
    dim, rank : int
        Of real subspaces; 0 counts sample ids instead.
    features : FeatureMap or None
        Real subspaces only: readings vary along a curve, and are learnt as features, too. A
        gamma that is left open the fleet works out.
    learns_scaling : bool
        Real subspaces only: the fleet works out center and scale.
    half_life_s : float or None
        Real subspaces only.
    faults : str or Faults
        A preset's name, or rates.
    given : tuple of (str, float)
        Rates that every seed has in place of those drawn; all else of a seed stays as it is.
    """

    nodes: int = 8
    fan_in: int = 3
    depth: int = 3
    hours: float = 4.0
    reading_every_s: float = 120.0
    report_every_s: float = 600.0
    checkpoint_every_s: float = 400.0
    cap_s: float = 300.0
    dim: int = 0
    rank: int = 0
    oversample: int = 5
    features: FeatureMap | None = None
    learns_scaling: bool = False
    half_life_s: float | None = None
    faults: str | Faults = "swarm-1"
    given: tuple[tuple[str, float], ...] = ()

    def drawn(self, rng: np.random.Generator) -> Faults:
        """Return the rates that one seed runs with."""
        drawn = PRESETS[self.faults](rng) if isinstance(self.faults, str) else self.faults
        return replace(drawn, **dict(self.given))

    @property
    def measures_first(self) -> bool:
        """Whether readings are not learnt before the fleet has settled scaling, or gamma."""
        return self.learns_scaling or (self.features is not None and not self.features.settled)

    @property
    def settles_in_s(self) -> float:
        """How long after healing the root may take to know all (I3)."""
        # And what messages take when nothing is wrong: some seconds a level.
        return self.cap_s + 1.2 * self.report_every_s * self.depth + 2.0 * (self.depth + 1)


def quiet(faults: Faults) -> Faults:
    """Return faults after healing: none, and messages as fast as they go."""
    return Faults(broker=faults.broker)
