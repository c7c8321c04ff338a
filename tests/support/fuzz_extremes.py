"""Extreme but valid reports through three levels: what comes of them is read at each.

    client -> site -> region -> root

All aggregators are the real ones; between them travel bytes, and bytes are kept. Nobody reads
messages before they are sent (`self_check`): what is tried is that sums stay within bounds.
"""

from __future__ import annotations

import traceback
from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np

from submerge import PeerError, Schema
from submerge.aggregator.group import GroupPlan
from submerge.protocol.messages import Answer, Join, Model, Reason, Report, Stamp
from submerge.protocol.summaries import Subspaces
from submerge_aggregator.batch import objection
from support.nodes import GROUP, Inbound, new_incarnation
from support.wild import schema_of, wild_report
from support.wired import WiredTable

ABOVE = {"g": "r", "h": "r", "s": "g", "t": "g", "u": "h"}
"""Two regions below the root, three sites below them."""

CLIENTS, BELOW = ("v", "w", "x", "y", "z"), "below"
"""Children that claim the most: clients, and an aggregator."""

IN_ONE_WORLD = 100
"""Reports in one world: then another schema, and other clocks."""


@dataclass
class Outcome:
    """What came of extreme reports.

    upward, models : messages of aggregators that were read
    unreadable : those of them that were not readable, or INVALID to their parent
    errors : the first exceptions
    """

    accepted: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    upward: int = 0
    models: int = 0
    unreadable: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    restarts: int = 0

    @property
    def fine(self) -> bool:
        """Whether nothing happened that must not."""
        return not self.unreadable and not self.errors


class Extremes:
    """One world: six aggregators on three levels, and children that claim the most."""

    def __init__(self, seed: int, outcome: Outcome) -> None:
        self.rng = rng = np.random.default_rng((seed, 2))
        self.outcome = outcome
        half_life = [None, 86400.0, 3600.0, 1.0][int(rng.integers(4))]
        center = "own" if rng.random() < 0.5 else "fleet"
        width = int(rng.integers(1, 10))
        kernel = bool(rng.random() < 0.3)
        self.schema: Schema = schema_of(kernel, width, half_life=half_life, center=center)
        kind = Subspaces(2, oversample=1)
        self.table = WiredTable(kind, self.schema, seed=seed)
        learns, robust = bool(rng.random() < 0.3), bool(rng.random() < 0.3)
        top = GroupPlan(kind, self.schema, learns_scaling=learns, robust=robust)
        self.table.root("r", plans={GROUP: top}, scaling_rows=200)
        for label, parent in ABOVE.items():
            self.table.aggregator(
                label, under=parent, plans={GROUP: GroupPlan(kind, robust=robust)}
            )
            host = self.table.hosts[label]
            host.synced = bool(rng.random() < 0.7)
            host.clock_error = float(rng.choice([0, 20, -1e9, 3e9], p=[0.7, 0.1, 0.1, 0.1]))
        self.table.heard = self._reads
        self._joined: set[tuple[str, str, int]] = set()
        self.table.passes(60)

    def run(self, reports: int) -> None:
        """Take in so many reports that are accepted, and let time pass between them."""
        for i in range(20 * reports):
            if self.outcome.accepted >= reports:
                break
            self._put(i)
            if i % 5 == 0:
                self.table.passes(float(self.rng.choice([0, 30, 400, 4000])))
                for each in (self.table.said, self.table.lost, self.table.seen):
                    each.clear()
                self.table.published.clear()
            if self.rng.random() < 0.02:
                self.table.restarts(str(self.rng.choice(["r", *ABOVE])))
                self.outcome.restarts += 1
        self.table.passes(3000)

    def _put(self, i: int) -> None:
        rng = self.rng
        node = str(rng.choice([*CLIENTS, BELOW]))
        label = str(rng.choice(["r", "g"] if node == BELOW else ["s", "t", "u", "g", "r"]))
        self.put(label, node, i // 10 if rng.random() < 0.7 else i, i + 1, rng)

    def put(self, label: str, node: str, number: int, seq: int, rng: np.random.Generator) -> None:
        """Have an aggregator take the wildest report of a node, in one of its incarnations."""
        table = self.table
        host = table.hosts[label]
        if host.ledger is None:
            return
        fence = b"f" * 16 if node == BELOW else b""
        stamp = Stamp(node, GROUP, new_incarnation(number), seq)
        if fence:
            table.tell(label, Join(stamp, fence, (), b""))
        # The schema may have been settled meanwhile.
        message = wild_report(
            rng, host.ledger.schema, stamp, pinned=host.node.incarnation, fence=fence
        )
        reasons = [m.reason for m in table.tell(label, message) if isinstance(m, Answer)]
        if Reason.ACK in reasons:
            self.outcome.accepted += 1
        for reason in reasons:
            self.outcome.refused[reason.name.lower()] += reason is not Reason.ACK
        table.run()

    def _reads(self, letter: Inbound, _: bool) -> None:
        """Read each message of an aggregator before it arrives."""
        message, source = letter.message, letter.source
        if isinstance(message, Report | Model):
            why = objection(message, coarse=bool(self.rng.random() < 0.3))
            if isinstance(message, Report):
                self.outcome.upward += 1
            else:
                self.outcome.models += 1
            if why is not None:
                self.outcome.unreadable.append(f"a {type(message).__name__} of {source}: {why}")
        invalid = isinstance(message, Answer) and message.reason is Reason.INVALID
        if invalid and letter.to in ABOVE:
            self.outcome.unreadable.append(f"a report of {letter.to} is INVALID to {source}")


def through_three_levels(seed: int, reports: int) -> Outcome:
    """Let so many reports pass through one world after another; stop at the first failure."""
    outcome = Outcome()
    done = 0
    while done < reports and outcome.fine:
        world = min(IN_ONE_WORLD, reports - done)
        one = _one_world(seed, world)
        done += one.accepted
        outcome = _both(outcome, one)
        seed += 1
    return outcome


def _one_world(seed: int, reports: int) -> Outcome:
    outcome = Outcome()
    try:
        Extremes(seed, outcome).run(reports)
    except PeerError:
        if outcome.fine:
            outcome.errors.append(f"seed {seed}: {traceback.format_exc()}")
    except Exception:  # of any kind: it is what is looked for
        outcome.errors.append(f"seed {seed}: {traceback.format_exc()}")
    outcome.unreadable = [f"seed {seed}: {each}" for each in outcome.unreadable]
    return outcome


def _both(one: Outcome, other: Outcome) -> Outcome:
    return replace(
        one,
        accepted=one.accepted + other.accepted,
        refused=one.refused + other.refused,
        upward=one.upward + other.upward,
        models=one.models + other.models,
        unreadable=one.unreadable + other.unreadable,
        errors=one.errors + other.errors,
        restarts=one.restarts + other.restarts,
    )
