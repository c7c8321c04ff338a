"""Fuzzing: damaged messages into `codec.decode`, and what it lets through into nodes.

    python tests/support/fuzz.py --minutes 10 --seed 1
    python tests/support/fuzz.py --mutants 200000 --extremes 10000

The second form damages the golden messages (`fuzz_golden`), and sends extreme but valid reports
through three levels (`fuzz_extremes`).

What holds, or it ends with status 1 and says which message of which seed it was: `decode` raises
nothing but a `PeerError`; a step raises nothing; what a node keeps can be read back, what it says
can be read; a message that is refused changes no row and no model; nobody has more rows than it
may; what a site says is never INVALID to its root.
"""

from __future__ import annotations

import argparse
import resource
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

import numpy as np

from submerge import PeerError
from submerge.aggregator.rows.ledger import AGGREGATOR_ROWS, CLIENT_ROWS, CLOSED
from submerge.protocol.messages import Answer, Join, Joined, Message, Reason, Report
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec
from support.damage import damaged, mutate, spliced
from support.fuzz_extremes import through_three_levels
from support.fuzz_golden import GoldenWorld, golden, nested
from support.fuzz_world import BELOW, CHILDREN, World
from support.nodes import GROUP, Host
from support.wire import reported

LONG = 2000
"""Messages in one world: after so many, most lives are closed, and it goes on in another."""


GROWTH_MIB = 64
"""Worlds are let go of: more memory than after the first of them, by so much, is a leak."""


@dataclass
class Tally:
    """What came of it."""

    executions: int = 0
    taken: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    answers: Counter[str] = field(default_factory=Counter)
    restarts: int = 0


class Failure(Exception):
    """Something that must not happen, and the bytes that it happened with."""


def peak_mib() -> float:
    """Return the most memory that this process ever had; Linux."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fuzz(seed: int, tally: Tally, *, executions: int, make: Callable[[int], World] = World) -> None:
    """Go on in one world, for so many messages."""
    world, rng = make(seed), np.random.default_rng((seed, 1))
    last = b""
    for i in range(executions):
        label, message = world.draws()
        kind, data = _bytes(message, last, rng)
        last = data
        tally.executions += 1
        try:
            _hears(world, label, kind, data, tally)
            if i % 20 == 0:
                world.settles()
            if i % 100 == 0:
                world.releases()
            if rng.random() < 0.005:
                world.table.restarts(str(rng.choice(["r", "a", "b", "c"])))
                tally.restarts += 1
        except Failure:
            raise
        except Exception as error:
            what = f"seed {seed}, message {i}, a {kind} to {label}: {data.hex()}"
            raise Failure(f"{traceback.format_exc()}\n{what}") from error


def _bytes(message: Message, last: bytes, rng: np.random.Generator) -> tuple[codec.Kind, bytes]:
    """Return a message as bytes, damaged or not."""
    kind, form = codec.kind_of(message), _form(message)
    for _ in range(int(rng.choice([0, 1, 1, 1, 2, 5]))):
        mutate(form, rng)
    data = bytes(form.SerializeToString())
    draw = rng.random()
    if draw < 0.02:
        data = nested(data, rng)
    elif draw < 0.15:
        data = damaged(data, rng)
    elif draw < 0.2:
        data = spliced(data, last, rng)
    elif draw < 0.22:
        kind = codec.KINDS[int(rng.integers(len(codec.KINDS)))]
    return kind, data


def _form(message: Message) -> Any:
    kind = codec.kind_of(message)
    form = pb.WatchResponse if kind == "watch" else codec._PARTS[kind].message
    coarse = isinstance(message, Report) and message.stamp.seq % 2 == 0
    return form.FromString(codec.encode(message, coarse=coarse))


def _hears(world: World, label: str, kind: codec.Kind, data: bytes, tally: Tally) -> None:
    """Have a node hear some bytes, as its doors would let them in."""
    try:
        message = codec.decode(kind, data)
    except PeerError as error:
        tally.refused[error.kind] += 1
        return
    tally.taken[kind] += 1
    below = isinstance(message, Join | Report)
    if below and (label == "c" or message.stamp.node not in (*CHILDREN, BELOW)):
        return  # no certificate has that name
    host = world.table.hosts[label]
    before = _state(host)
    answers = [m for m in world.table.tell(label, message) if isinstance(m, Joined | Answer)]
    tally.answers.update(m.reason.name.lower() for m in answers if below)
    if below and answers and answers[0].reason is not Reason.ACK:
        rows, quarantined, merge = zip(before, _state(host), strict=True)
        _check(rows[0] == rows[1], f"{answers[0].reason} has changed rows")
        # Who contradicts itself is set apart: its rows are there, and leave the merge.
        _check(
            merge[0] == merge[1] or quarantined[0] != quarantined[1],
            "a refusal has changed the merge",
        )
    world.table.run()
    for letter in world.table.said:
        invalid = isinstance(letter.message, Answer) and letter.message.reason is Reason.INVALID
        _check(not (invalid and letter.to == "a"), "what a site says is INVALID to its root")
    _check_rows(world)


def _state(host: Host) -> tuple[Any, Any, Any]:
    """Return an aggregator's rows, who is set apart, and the merge; of a client nothing."""
    if host.label == "c" or host.ledger is None:
        return None, None, None
    rows = dict(host.ledger.rows)
    return rows, host.node.excluded(GROUP)[1], reported(host.ledger.summary())


def _check_rows(world: World) -> None:
    for label in ("r", "a", "b"):
        ledger = world.table.hosts[label].ledger
        if ledger is None:
            continue
        rows = Counter(node for node, _ in ledger.rows)
        for node, n in rows.items():
            most = AGGREGATOR_ROWS if node in (BELOW, "a") else CLIENT_ROWS
            _check(n <= most, f"{n} rows of {node}")
        for node in rows:
            _check(len(ledger.member(node).closed) <= CLOSED, "too many closed lives")


def _check(holds: bool, what: str) -> None:
    if not holds:
        raise AssertionError(what)


def say(line: str) -> None:
    """Write a line, now."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Fuzz for some minutes, and say what came of it."""
    options = argparse.ArgumentParser(description="Damaged messages into codec and nodes.")
    options.add_argument("--minutes", type=float, default=1.0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--mutants", type=int, default=0)
    options.add_argument("--extremes", type=int, default=0)
    given = options.parse_args()
    if given.mutants or given.extremes:
        warnings.simplefilter("error")
        sys.exit(counted(given.seed, given.mutants, given.extremes))
    tally, end, seed, status = Tally(), time.monotonic() + 60 * given.minutes, given.seed, 0
    first = peak_mib()
    warnings.simplefilter("error")  # such as NumPy's, of an overflow
    while time.monotonic() < end and not status:
        try:
            fuzz(seed, tally, executions=LONG)
        except Failure as failure:
            say(str(failure))
            status = 1
        if seed == given.seed:
            first = peak_mib()
            say(f"peak memory after the first world: {first:.0f} MiB")
        seed += 1
    say(f"peak memory at the end: {peak_mib():.0f} MiB")
    status |= peak_mib() > first + GROWTH_MIB
    say(f"{tally.executions:,} messages, {seed - given.seed} worlds, {tally.restarts} restarts")
    say(f"taken: {listed(tally.taken)}")
    say(f"refused: {listed(tally.refused)}")
    say(f"answers to children: {listed(tally.answers)}")
    sys.exit(status)


def counted(seed: int, mutants: int, extremes: int) -> int:
    """Try so many mutants and extreme reports; say what came of them, and return the status."""
    tally, start, failures = Tally(), time.monotonic(), list[str]()
    worlds = 0
    while tally.executions < mutants and not failures:
        try:
            left = min(LONG, mutants - tally.executions)
            fuzz(seed + worlds, tally, executions=left, make=GoldenWorld)
        except Failure as failure:
            failures.append(str(failure))
        worlds += 1
    if mutants:
        say(
            f"{tally.executions:,} mutants of {len(golden())} golden messages, {worlds} worlds,"
            f" {tally.restarts} restarts: {len(failures)} failures,"
            f" {time.monotonic() - start:.0f} s"
        )
        say(f"taken: {listed(tally.taken)}")
        say(f"refused: {listed(tally.refused)}")
        say(f"answers to children: {listed(tally.answers)}")
    start = time.monotonic()
    outcome = through_three_levels(seed, extremes)
    if extremes:
        say(
            f"{outcome.accepted:,} extreme reports accepted, {outcome.restarts} restarts,"
            f" {time.monotonic() - start:.0f} s; refused besides: {listed(outcome.refused)}"
        )
        say(
            f"of {outcome.upward:,} reports upward and {outcome.models:,} models"
            f" {len(outcome.unreadable)} unreadable; {len(outcome.errors)} exceptions"
        )
    failures += outcome.unreadable + outcome.errors
    for each in failures:
        say(each)
    return int(bool(failures))


def listed(counts: Counter[str]) -> str:
    """Return counts in a line, the largest first."""
    return ", ".join(f"{name} {n:,}" for name, n in counts.most_common())


if __name__ == "__main__":
    main()
