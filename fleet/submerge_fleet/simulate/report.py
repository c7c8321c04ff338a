"""What simulated seeds came to, for a person: tables, and what led to a violation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from submerge.features import FeatureMap
from submerge.simulate import SHARES, Plan
from submerge_fleet.console.units import plain, span_text
from submerge_fleet.simulate.run import Findings, Violation

INVARIANTS = {
    "I1": "no reading is counted twice",
    "I2": "what the root has counted it goes on counting",
    "I3": "after healing the root knows all in time; same rows, same bytes",
    "I4": "every reading is counted, or lost to a cause that may cost it",
    "I5": "what a node remembers, and says in a minute, has limits",
    "I6": "a message that is refused changes no row",
    "I7": "a model's version never falls, and the newest reaches all",
    "I8": "a store is given up only for another parent or a doubtful disk",
    "I9": "who contradicts itself is quarantined, and nobody else is",
}

SHOWN = 60
"""Lines of a transcript."""

NAMED = 20
"""Violations that are told one by one."""

NODE = re.compile(r"(?<![=/\w])(?:root|c\d+|a\d+\.\d+)(?!\w)")
"""A node's name; not the four digits of an incarnation, which may look like one."""

SCORES = 200
"""Bytes that scores add to a report, at most."""

ENVELOPE = 256
"""Bytes beside a subspace and scores: names, counts, a fingerprint."""

TOTALS = 24
"""Bytes of a subspace's own totals; of one they are in the envelope."""

SAMPLE = 1536 + 24
"""Bytes of the rows that gamma is settled by, and what they come in."""


class Excerpt(NamedTuple):
    """The lines of a transcript that lead to a violation, and how many were left out."""

    lines: list[str]
    left_out: int


# -- figures -----------------------------------------------------------------------


def tell(console: Console, found: Findings) -> None:
    """Print what was run, what held, what is missing, and what it cost."""
    console.print(_grid(_run(found)))
    console.print()
    if found.watched:
        console.print(_invariants(found))
        console.print()
        console.print(_missing(found))
        console.print()
    console.print(_grid(_figures(found)))


def _run(found: Findings) -> list[tuple[str, str]]:
    """Say what was run."""
    plan, seeds = found.plan, [outcome.seed for outcome in found.outcomes]
    middle = [max(1, -(-plan.nodes // plan.fan_in**level)) for level in range(1, plan.depth)]
    between = f"{' + '.join(map(str, middle))} aggregators, " if middle else ""
    preset = f"{plan.faults}: each seed draws its own rates" if plan.faults != "none" else "none"
    if plan.given:
        by_hand = _strengths(plan.given)
        preset = f"{by_hand}; else {preset}" if plan.faults != "none" else by_hand
    fleet = (
        f"{_of(plan.nodes, 'client')}, {between}a root; a reading every"
        f" {span_text(plan.reading_every_s)}, a report every {span_text(plan.report_every_s)}"
    )
    said = [
        ("seeds", f"{len(seeds)}, {_through(seeds)}, {plain(plan.hours)} virtual hours each"),
        ("fleet", fleet),
        ("faults", preset),
    ]
    if plan.faults != "none":
        drawn = [(name, value) for name, value in found.rates.items() if value]
        said.append(("in the mean", _strengths(drawn)))
    return said


def _invariants(found: Findings) -> Table:
    """Say how many seeds broke each rule."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("rule", no_wrap=True)
    table.add_column("broken", justify="right", no_wrap=True)
    table.add_column("what must hold")
    broken = [violation.invariant for violation in found.violations]
    for name, meaning in INVARIANTS.items():
        count = broken.count(name)
        table.add_row(name, str(count), meaning, style="bold red" if count else "")
    for name in sorted(set(broken) - set(INVARIANTS)):
        table.add_row(name, str(broken.count(name)), "", style="bold red")
    seeds = len(found.outcomes)
    bad = len({violation.seed for violation in found.violations})
    bound = ""
    if found.bound is not None and seeds <= 3:
        bound = ": too few to say more"
    elif found.bound is not None:
        bound = f": at most 3/{seeds} = {found.bound:.2g} of all, by the rule of three"
    table.add_row("all", str(bad), f"of {_of(seeds, 'seed')}{bound}")
    return table


def _missing(found: Findings) -> Table:
    """Attribute every reading, the counted first."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("readings", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("what became of them")
    whole = found.generated
    table.add_row(f"{whole:,}", _share(whole, whole), "generated")
    table.add_row(f"{found.counted:,}", _share(found.counted, whole), "counted at the root")
    for cause, count in found.missing.items():
        table.add_row(f"{count:,}", _share(count, whole), f"missing, {cause}")
    stray = found.unattributed or 0
    style, twice = ("bold red", ", or counted twice") if stray else ("", "")
    table.add_row(f"{stray:,}", _share(stray, whole), f"unattributed{twice}", style=style)
    return table


def _figures(found: Findings) -> list[tuple[str, str]]:
    """Say the rest: a name and a sentence each."""
    said = []
    if not found.watched:
        coverage = (
            f"{_share(found.counted, found.generated)}: {found.counted:,} counted of"
            f" {found.generated:,} readings; causes are known with sample ids only"
        )
        said.append(
            (
                "invariants",
                "end state audited (I1, I3, I4, I5, I7); the rest takes sample ids, without --dim",
            )
        )
        said.append(("coverage", coverage))
        said.append(("angle", _angle(found)))
    if found.settled is not None:
        middle, longest = found.settled
        convergence = (
            f"{middle:,.0f} s after healing in the median, {longest:,.0f} s at most;"
            f" {found.plan.settles_in_s:,.0f} s are allowed"
        )
        said.append(("convergence", convergence))
    p50, p99, most = found.staleness
    staleness = f"p50 {p50:,.0f} s, p99 {p99:,.0f} s, at most {most:,.0f} s"
    return [
        *said,
        ("traffic", f"{found.bytes_per_node_day:,.0f} bytes a client and day, in reports"),
        ("largest", _largest(found)),
        ("staleness", f"{staleness} (silence of clients, to a power of two)"),
        ("trace", f"{found.trace}{'' if len(found.outcomes) == 1 else ' (of all seeds)'}"),
        ("time", f"{found.seconds:.3g} s"),
    ]


def _angle(found: Findings) -> str:
    angles, seeds = found.angles, len(found.outcomes)
    if not angles and found.plan.half_life_s is not None:
        return "none: readings fade, and the pooled truth weighs all alike"
    if not angles:
        return "none: no root had a model in the end"
    said = f"{max(angles):.2g} degrees at most between model and pooled truth"
    if seeds > 1:
        said += f", {median(angles):.2g} in the median"
    none = seeds - len(angles)
    return said + (f"; no model in {_of(none, 'seed')}" if none else "")


def _largest(found: Findings) -> str:
    plan, largest = found.plan, found.largest_report
    if found.watched:
        return f"report {largest:,} bytes, of sample ids"
    if plan.features is not None:
        return f"report {largest:,} bytes, {_verdict_on_both(plan, plan.features, largest)}"
    d, k = plan.dim, plan.rank + plan.oversample
    limit = _bytes(d, k) + ENVELOPE
    verdict = "within" if largest <= limit + SCORES else "OVER"
    return (
        f"report {largest:,} bytes, {verdict} 4dk + 8(d+k) + 256 = {limit:,}"
        f" and {SCORES} of scores (d = {d}, k = {k})"
    )


def _verdict_on_both(plan: Plan, features: FeatureMap, largest: int) -> str:
    """Hold a kernel group's largest report against its two memories, or moments and sample."""
    d, k = plan.dim, plan.rank + plan.oversample
    dim = features.dim(d)
    linear = min(d, min(plan.rank, max(1, d // 2)) + plan.oversample)
    learnt = _bytes(dim, k) + _bytes(d, linear) + TOTALS
    limit = max(learnt, 16 * d + SAMPLE) + ENVELOPE
    # Of three kinds, where others are of two.
    scores = SCORES * 3 // 2
    verdict = "within" if largest <= limit + scores else "OVER"
    return (
        f"{verdict} {limit:,} and {scores} of scores ({dim} features of {d} channels,"
        f" {k} and {linear} directions)"
    )


def _bytes(d: int, k: int) -> int:
    return 4 * d * k + 8 * (d + k)


# -- a violation -------------------------------------------------------------------


def accuse(console: Console, violations: list[Violation], excerpt: Excerpt, repeat: str) -> None:
    """Print all violations, what led to the first, and the command that shows it again."""
    console.print()
    for seed, invariant, what in violations[:NAMED]:
        console.print(Text(f"seed {seed} breaks {invariant} {what}", style="bold red"))
    if len(violations) > NAMED:
        console.print(f"and {len(violations) - NAMED} more: --json names them all")
    first = violations[0]
    title = f"what led to {first.invariant} in seed {first.seed}"
    left = f" ({excerpt.left_out:,} earlier or unrelated lines left out)"
    console.print(Text(title, style="bold") + Text(left if excerpt.left_out else ""))
    if not excerpt.lines:
        console.print("(run again, it did not come back: the seed is not repeatable)")
    for line in excerpt.lines:
        style = "bold red" if " !! " in line else "" if " hears " in line else "yellow"
        console.print(Text(line.rstrip(), style=style), soft_wrap=True)
    console.print(Text("to see it again:", style="bold"))
    console.print(Text(repeat), soft_wrap=True)


def leading(lines: list[str]) -> Excerpt:
    """Pick the lines that lead to the first violation.

    Those are the last that mention a node that it names, and whatever befell any node:
    a death, a move, a lost disk. Models on their way down say little, unless it is of them.
    """
    end = next((i for i, line in enumerate(lines) if " !! " in line), None)
    if end is None:
        return Excerpt([], len(lines))
    what = lines[end].partition(" !! ")[2]
    names = set(NODE.findall(what))
    surveyed, befell = [], []
    for i, line in enumerate(lines[:end]):
        if " hears Model" in line and "model" not in what:
            continue
        if not names or names & set(NODE.findall(line)):
            surveyed.append(i)
        elif " hears " not in line:
            befell.append(i)
    # In a large fleet something always befalls somebody: not more than a third of the room.
    surveyed = surveyed[-SHOWN + 1 + min(len(befell), SHOWN // 3) :]
    befell = befell[len(befell) + len(surveyed) + 1 - SHOWN :] if len(surveyed) + 1 < SHOWN else []
    shown = [lines[i] for i in sorted(surveyed + befell)] + [lines[end]]
    return Excerpt(shown, end + 1 - len(shown))


# -- words -------------------------------------------------------------------------


def _grid(lines: Iterable[tuple[str, str]]) -> Table:
    """A name and a sentence a line; sentences wrap beside the names."""
    grid = Table.grid(padding=(0, 2))
    grid.add_column(no_wrap=True)
    grid.add_column(overflow="fold")
    for name, value in lines:
        grid.add_row(name, Text(value))
    return grid


def _strengths(faults: Iterable[tuple[str, float]]) -> str:
    return ", ".join(f"{name} {_strength(name, value)}" for name, value in faults)


def _strength(name: str, value: float) -> str:
    if name in SHARES:
        return f"{100 * value:.3g}%"
    if not name.endswith("_s"):
        return f"{value:.3g}/h"
    if value % 60 == 0:
        return span_text(value)
    return f"{value:,.0f}s" if value >= 100 else f"{value:.3g}s"


def _share(part: int, whole: int) -> str:
    return f"{part / whole:.2%}" if whole else "-"


def _through(seeds: list[int]) -> str:
    return f"number {seeds[0]}" if len(seeds) == 1 else f"{seeds[0]} to {seeds[-1]}"


def _of(n: int, what: str) -> str:
    return f"{n:,} {what}{'' if n == 1 else 's'}"
