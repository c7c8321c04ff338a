"""Faults: the failures that are injected into a simulated fleet, and presets of them. A preset is
one set of rates, or a distribution over them that each seed draws from. All times are virtual
seconds, and rates are events per host and hour.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace

import numpy as np


@dataclass(frozen=True, slots=True)
class Faults:
    """Rates of failures, until the fleet is healed.

    loss, duplicate, reorder : Shares of messages that are lost, come twice, or are held up for
        minutes.
    delay_s : Mean delay of a message.
    broker : Share of parents that listen on a shared broker, which retains the last message of each
        topic and sends it again when a process (re)subscribes.
    redeliver : Rate at which a broker sends everything again for no reason.
    partition, outage_s : Rate at which a host is cut off, and for how long on average.
    slow, slow_s : Rate at which a parent becomes slow, and by how many seconds a message.
    kill, down_s : Rate at which a process dies, and how long it is down on average.
    kill_between : Chance to die after any single effect.
    failed_write : Share of writes that fail.
    card_lost, card_back : Rate at which a client restarts with an empty disk, or an old copy.
    store_lost, store_back : The same for an aggregator.
    root_lost, root_back : The same for the root.
    card_clone, store_clone : Rate at which a second process starts from a copy of a client's card
        or an aggregator's store, beside the first.
    move : Rate at which a node gets another parent.
    late : Share of machines that are switched on up to an hour after the first.
    clock : Rate at which a clock is set wrong by up to years.
    forget : Rate at which an operator has a client forgotten.
    twin : Rate at which a client's machine is copied with its memory, as virtual machines are: two
        processes then continue one incarnation.
    robust : Chance that the group is robust: clients far from the others are left out.
    alarms : Rate at which a client raises an alarm.
    orders : Rate at which an operator decides on a client's alarm, or pauses or resumes its
        learning.
    histories : Rate at which an operator pushes a history to the root, or has one forgotten.
    channels : Rate at which an operator gives the group other channels; only with sample ids.
    malicious : Messages an hour of one node that has a valid key and follows no rule; 0 for no such
        node.
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
    robust: float = 0.0
    alarms: float = 0.0
    orders: float = 0.0
    malicious: float = 0.0
    histories: float = 0.0
    channels: float = 0.0

    @property
    def harms_disks(self) -> bool:
        """Whether anything but network and processes fails."""
        return any(getattr(self, name) for name in DISKS)

    @property
    def network_only(self) -> bool:
        """Whether only messages suffer: then no reading may be missing at the end."""
        processes = self.kill, self.kill_between, self.failed_write, self.twin, self.channels
        return not (self.harms_disks or any(processes))


SHARES = (
    *("loss", "duplicate", "reorder", "broker", "kill_between", "failed_write", "late"),
    "robust",
)
"""Fields that are shares; of the others, those that end in `_s` are times, the rest rates."""

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
    histories=3.0,
)
"""Highest rates that swarm-1 draws."""

NETWORK = (
    *("loss", "duplicate", "reorder", "delay_s", "broker", "redeliver", "partition"),
    *("outage_s", "slow", "slow_s", "late"),
)


def _draw(rng: np.random.Generator, names: tuple[str, ...]) -> Faults:
    """Draw each rate: with one third each absent, up to a fifth of `MOST`, or up to all of it."""
    strengths = {}
    for name in names:
        most = getattr(MOST, name)
        kind = rng.integers(3)
        share = 0.0 if kind == 0 else rng.random() * (0.2 if kind == 1 else 1.0)
        strengths[name] = most * (share if name not in LENGTHS else 0.05 + rng.random())
    return Faults(**strengths)


def _all(rng: np.random.Generator) -> Faults:
    """Draw the rates of all-1."""
    return replace(
        _draw(rng, ALL),
        twin=0.2 * rng.random() * (rng.random() < 0.5),
        robust=0.5,
        alarms=3.0 * rng.random(),
        orders=rng.random(),
    )


LENGTHS = ("delay_s", "outage_s", "slow_s", "down_s")
"""Lengths of time, which are never 0."""

LATER = ("twin", "robust", "alarms", "orders", "malicious", "channels")
"""What swarm-1 does not draw: its seeds stay what they were."""

ALL = tuple(field.name for field in fields(Faults) if field.name not in LATER)
"""What swarm-1 draws."""

RANKS = "ranks-1"
"""The faults of swarm-1, among clients with ranks of their own."""

FLOORS = ("floors-1", "floors-all-1")
"""The faults of swarm-1, and of all-1, where rows are told eight together, with five nodes'."""

NOISE = "noise-1"
"""The faults of swarm-1, but for histories, where the root's models carry noise."""

INCIDENTS = "incidents-1"
"""Kills, duplicates, moves and harmed disks, while clients raise alarms at the same time."""

PRESETS: dict[str, Callable[[np.random.Generator], Faults]] = {
    "none": lambda _: Faults(),
    "network": lambda rng: _draw(rng, NETWORK),
    "kills": lambda rng: _draw(rng, (*NETWORK, "kill", "down_s", "kill_between", "failed_write")),
    "copies": lambda rng: replace(
        _draw(rng, (*NETWORK, "kill", "down_s", "card_back", "store_back")),
        # Up to half of the messages are lost: two processes of one store then find out late.
        loss=0.5 * rng.random(),
        card_clone=0.3 * rng.random(),
        store_clone=2.0 * rng.random(),
    ),
    # Urgent reports, many of them lost: of two processes of one store the old one gets ahead.
    "fences": lambda rng: Faults(
        loss=0.3 + 0.2 * rng.random(), store_clone=3.0 + 2.0 * rng.random(), alarms=8.0
    ),
    "twins": lambda rng: replace(
        _draw(rng, (*NETWORK, "kill", "down_s", "clock")), twin=0.05 + 0.3 * rng.random()
    ),
    "swarm-1": lambda rng: _draw(rng, ALL),
    RANKS: lambda rng: _draw(rng, ALL),
    FLOORS[0]: lambda rng: _draw(rng, ALL),
    INCIDENTS: lambda rng: replace(_draw(rng, ALL), alarms=0.2, orders=rng.random(), clock=0.0),
    NOISE: lambda rng: replace(_draw(rng, ALL), histories=0.0),
    "all-1": lambda rng: _all(rng),
    FLOORS[1]: lambda rng: _all(rng),
    "channels-1": lambda rng: replace(_all(rng), channels=0.3 + 0.7 * rng.random()),
    "hostile-1": lambda rng: replace(_draw(rng, ALL), malicious=10.0 + 110.0 * rng.random()),
}


def quiet(faults: Faults) -> Faults:
    """Return the faults after healing: none, with the default delay."""
    # What is no failure goes on: alarms, operators and the malicious node.
    return Faults(
        broker=faults.broker,
        alarms=faults.alarms,
        orders=faults.orders,
        malicious=faults.malicious,
    )
