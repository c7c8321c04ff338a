"""Results of simulated seeds as text: tables, and the events that led to a violation."""

from __future__ import annotations

import re
from collections.abc import Iterable
from statistics import median
from typing import NamedTuple

from rich.console import Console
from rich.table import Table
from rich.text import Text

from submerge.features import FeatureMap
from submerge.pca.whole_scatter import is_narrow
from submerge_files.console.units import plain, span_text
from submerge_lab.simulate.run import Findings, Violation
from submerge_lab.simulator import SHARES, Plan

INVARIANTS = {
    "I1": "no reading is counted twice",
    "I2": "a reading that the root has counted stays counted",
    "I3": "after faults the root has all rows in time; same rows, same bytes",
    "I4": "every reading is counted, or lost to a cause that may lose it",
    "I5": "a node's memory, and its messages in a minute, have limits",
    "I6": "a refused message changes no row",
    "I7": "a model's version never falls, and the newest reaches all nodes",
    "I8": "a store is given up only for another parent or an unreliable disk",
    "I9": "a node that contradicts itself is quarantined, and no other is",
    "I10": "what an aggregator sends can be decoded",
    "I11": "the root knows each alarm as its client does; orders arrive",
    "I12": "each row of a history counts once, until the history is forgotten",
    "I13": "people hear of each alarm and incident once, and of its end once",
    "I14": "models with noise tell of each reading no more than they say",
}

SHOWN = 60
"""Lines of a transcript."""

NAMED = 20
"""Violations that are listed."""

NODE = re.compile(r"(?<![=/\w])(?:root|mallory|c\d+|a\d+\.\d+)(?!\w)")
"""A node's name, but not the digits of an incarnation, which may look alike."""

SCORES = 200
"""Bytes of scores in a report, at most."""

ENVELOPE = 256
"""Bytes of names, counts and a fingerprint in a report."""

TOTALS = 24
"""Bytes of a second subspace's totals; the envelope includes those of the first."""

SAMPLE = 1536 + 24
"""Bytes of the sample of rows that settles gamma, with their envelope."""


class Excerpt(NamedTuple):
    """Lines of a transcript that lead to a violation, and how many were left out."""

    lines: list[str]
    left_out: int


# -- figures -----------------------------------------------------------------------


def print_findings(console: Console, found: Findings) -> None:
    """Print what was run, invariants, missing readings, and costs."""
    console.print(_grid(_run(found)))
    console.print()
    if found.watched:
        console.print(_invariants(found))
        console.print()
        console.print(_missing(found))
        console.print()
    console.print(_grid(_figures(found)))


def _run(found: Findings) -> list[tuple[str, str]]:
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
    lines = [
        ("seeds", f"{len(seeds)}, {_through(seeds)}, {plain(plan.hours)} virtual hours each"),
        ("fleet", fleet),
        ("faults", preset),
    ]
    if plan.faults != "none":
        drawn = [(name, value) for name, value in found.rates.items() if value]
        lines.append(("mean rates", _strengths(drawn)))
    return lines


def _invariants(found: Findings) -> Table:
    """Return how many seeds broke each rule."""
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
    """Return what became of every reading."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column("readings", justify="right", no_wrap=True)
    table.add_column("share", justify="right", no_wrap=True)
    table.add_column("outcome")
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
    """Return all other figures: a name and a sentence each."""
    lines = []
    if not found.watched:
        coverage = (
            f"{_share(found.counted, found.generated)}: {found.counted:,} counted of"
            f" {found.generated:,} readings; causes are known with sample ids only"
        )
        checked = (
            "end state checked (I1, I3 to I5, I7, I10 to I14); others need sample ids (no --dim)"
        )
        lines += [("invariants", checked), ("coverage", coverage), ("angle", _angle(found))]
    if found.settled is not None:
        middle, longest = found.settled
        convergence = (
            f"{middle:,.0f} s after faults end in the median, {longest:,.0f} s at most;"
            f" {found.plan.settles_in_s:,.0f} s are allowed"
        )
        lines.append(("convergence", convergence))
    if found.coverage_said is not None and found.watched and not found.forged:
        said = f"{found.coverage_said:.2%} in the mean of the roots; the table has what is true"
        lines.append(("said", f"coverage {said}"))
    if found.forged:
        lines.append(("malicious", _forged(found.forged)))
    p50, p99, most = found.staleness
    staleness = f"p50 {p50:,.0f} s, p99 {p99:,.0f} s, at most {most:,.0f} s"
    return [
        *lines,
        ("traffic", f"{found.bytes_per_node_day:,.0f} bytes a client and day, in reports"),
        ("largest", _largest(found)),
        ("staleness", f"{staleness} (silence of clients, to a power of two)"),
        ("trace", f"{found.trace}{'' if len(found.outcomes) == 1 else ' (of all seeds)'}"),
        ("time", f"{found.seconds:.3g} s"),
    ]


def _forged(fates: dict[str, int]) -> str:
    sent = fates["sent"]
    others = ", ".join(f"{n:,} {fate}" for fate, n in fates.items() if fate != "sent")
    return f"{sent:,} messages of one node in each seed; of them, or in answer to them: {others}"


def _angle(found: Findings) -> str:
    angles, seeds = found.angles, len(found.outcomes)
    if not angles and found.plan.half_life_s is not None:
        return "none: readings fade, but exact PCA weighs all of them equally"
    if not angles:
        return "none: no root had a model in the end"
    text = f"{max(angles):.2g} degrees at most between model and exact PCA of all readings"
    if seeds > 1:
        text += f", {median(angles):.2g} in the median"
    none = seeds - len(angles)
    return text + (f"; no model in {_of(none, 'seed')}" if none else "")


def _largest(found: Findings) -> str:
    plan, largest = found.plan, found.largest_report
    if found.watched:
        return f"report {largest:,} bytes, of sample ids"
    if plan.features is not None:
        return f"report {largest:,} bytes, {_verdict_on_both(plan, plan.features, largest)}"
    d, k = plan.dim, plan.rank + plan.oversample
    formula, limit = "4dk + 8(2d+k)", _bytes(d, k) + ENVELOPE
    if is_narrow(d, k):
        formula, limit = "2d(d+1) + 16d", 2 * d * (d + 1) + 16 * d + ENVELOPE
    verdict = "within" if largest <= limit + SCORES else "OVER"
    return (
        f"report {largest:,} bytes, {verdict} {formula} + 256 = {limit:,}"
        f" and {SCORES} of scores (d = {d}, k = {k})"
    )


def _verdict_on_both(plan: Plan, features: FeatureMap, largest: int) -> str:
    """Compare a kernel group's largest report with the limit of two subspaces, or of a sample."""
    d, k = plan.dim, plan.rank + plan.oversample
    dim = features.dim(d)
    linear = min(d, min(plan.rank, max(1, d // 2)) + plan.oversample)
    learnt = _bytes(dim, k) + _bytes(d, linear) + TOTALS
    limit = max(learnt, 16 * d + SAMPLE) + ENVELOPE
    # Three kinds of scores, while a linear group has two.
    scores = SCORES * 3 // 2
    verdict = "within" if largest <= limit + scores else "OVER"
    return (
        f"{verdict} {limit:,} and {scores} of scores ({dim} features of {d} channels,"
        f" {k} and {linear} directions)"
    )


def _bytes(d: int, k: int) -> int:
    return 4 * d * k + 8 * (2 * d + k)


# -- a violation -------------------------------------------------------------------


def print_violations(
    console: Console, violations: list[Violation], excerpt: Excerpt, repeat: str
) -> None:
    """Print violations, the events that led to the first, and the command that repeats it."""
    console.print()
    for seed, invariant, what in violations[:NAMED]:
        console.print(Text(f"seed {seed} breaks {invariant} {what}", style="bold red"))
    if len(violations) > NAMED:
        console.print(f"and {len(violations) - NAMED} more: --json lists all of them")
    first = violations[0]
    title = f"what led to {first.invariant} in seed {first.seed}"
    left = f" ({excerpt.left_out:,} earlier or unrelated lines left out)"
    console.print(Text(title, style="bold") + Text(left if excerpt.left_out else ""))
    if not excerpt.lines:
        console.print("(it did not happen again in a second run: the seed is not repeatable)")
    for line in excerpt.lines:
        style = "bold red" if " !! " in line else "" if " hears " in line else "yellow"
        console.print(Text(line.rstrip(), style=style), soft_wrap=True)
    console.print(Text("to repeat it:", style="bold"))
    console.print(Text(repeat), soft_wrap=True)


def excerpt_of(lines: list[str]) -> Excerpt:
    """Return the lines that lead to the first violation."""
    # These are the last lines about nodes that it names, and failures of any node: a kill, a move,
    # a lost disk. Models on their way down are left out, unless the violation is about a model.
    end = next((i for i, line in enumerate(lines) if " !! " in line), None)
    if end is None:
        return Excerpt([], len(lines))
    what = lines[end].partition(" !! ")[2]
    names = set(NODE.findall(what))
    about, failures = [], []
    for i, line in enumerate(lines[:end]):
        if " hears Model" in line and "model" not in what:
            continue
        if not names or names & set(NODE.findall(line)):
            about.append(i)
        elif " hears " not in line:
            failures.append(i)
    # A large fleet always has failures: they get at most a third of the lines.
    about = about[-SHOWN + 1 + min(len(failures), SHOWN // 3) :]
    room = SHOWN - 1 - len(about)
    failures = failures[len(failures) - room :] if room > 0 else []
    shown = [lines[i] for i in sorted(about + failures)] + [lines[end]]
    return Excerpt(shown, end + 1 - len(shown))


# -- words -------------------------------------------------------------------------


def _grid(lines: Iterable[tuple[str, str]]) -> Table:
    """Return a table of names and sentences, which wrap beside the names."""
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
