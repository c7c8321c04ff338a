"""Rollup: the silence and the scores of all nodes below, added up; `alarms` has alarms."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product

from submerge.aggregator.rows.ledger import Ledger
from submerge.aggregator.rows.pool import Row
from submerge.protocol.machine import Now
from submerge.protocol.messages import Census, Incarnation, ScoreSketches
from submerge.stats.block_maxima import WINDOW_S, BlockMaxima, evened
from submerge.stats.block_maxima import pooled as pooled_maxima
from submerge.stats.quantile_sketch import QuantileSketch, merged, quantile
from submerge.stats.score_limits import Limits
from submerge.stats.statistic import KINDS

SHARES = (0.5, 0.95, 0.99, 0.999)
"""Shares of recent readings whose scores are below a model's limits. The first is the median and no
limit."""

LEAST_CLIENTS, LEAST_BLOCKS = 5, 12
"""With fewer clients, or of clients with fewer blocks, none is unlike the others."""

MOST_UNLIKE = 0.25
"""Largest share of clients that are left out as unlike the others: more are not all faulty."""

UNLIKE = 4.0
"""A client is unlike the others if its median block is over so many times the clients' median:
twice as far off, for SPE (squared prediction error) is a square."""

BINS = 30  # 2^30 s of silence are 34 years


def census(ledger: Ledger, now: Now) -> Census:
    """Count clients by silence, here and below."""
    bins = [0] * BINS
    nodes = 0
    for (node, incarnation), row in latest_row_per_node(ledger):
        silence = max(0.0, now.steady - ledger.presence.heard[node, incarnation])
        if row.from_client:
            nodes += 1
            bins[_bin(silence)] += 1
        elif row.report.census is not None:
            nodes += row.report.census.nodes
            for i, count in enumerate(row.report.census.ages):
                # The middle of its bin, and the time since it was reported.
                bins[_bin(1.5 * 2.0**i + silence)] += count
    while bins and not bins[-1]:
        bins.pop()
    return Census(nodes, tuple(bins))


def staleness(counted: Census) -> tuple[float, float, float]:
    """Return the silence that half, 99 % and all of the clients stay below, in seconds."""
    return (_age(counted, 0.5), _age(counted, 0.99), _age(counted, 1.0))


def scores(ledger: Ledger) -> ScoreSketches | None:
    sketches = [row.report.scores for row in ledger.current() if row.report.scores is not None]
    sketches += ledger.histories.sketches(ledger.fingerprint)
    if not sketches:
        return None
    maxima = _typical_maxima(ledger)
    # A linear group has none, whatever a child sends.
    linear = [
        each.linear for each in sketches if each.linear is not None and not ledger.schema.linear
    ]
    distances = [each.distance for each in sketches if each.distance is not None]
    return ScoreSketches(
        merged(*(each.spe for each in sketches)),
        merged(*(each.t2 for each in sketches)),
        merged(*linear) if linear else None,
        pooled_maxima(*maxima) if maxima else None,
        merged(*distances) if distances else None,
    )


def limits(sketches: ScoreSketches | None) -> Limits | None:
    """Return the limits by measured scores; None before the first score."""
    if sketches is None or not sketches.spe.n or not sketches.t2.n:
        return None
    linear = sketches.linear if sketches.linear is not None and sketches.linear.n else None
    distance = sketches.distance if sketches.distance is not None and sketches.distance.n else None
    return Limits(
        SHARES,
        _values(sketches.spe),
        _values(sketches.t2),
        sketches.spe.n,
        () if linear is None else _values(linear),
        () if distance is None else _values(distance),
    )


def _values(sketch: QuantileSketch) -> tuple[float, ...]:
    return tuple(quantile(sketch, q, falling=q > 0.5) for q in SHARES)


def _typical_maxima(ledger: Ledger) -> list[BlockMaxima]:
    """Return the nodes' block maxima, without clients whose median is as high as the rarest."""
    # A machine that was faulty while limits were measured must not raise them.
    heard: dict[str, tuple[float, bool, int, BlockMaxima]] = {}
    for row in ledger.current():
        stamp, sketches = row.report.stamp, row.report.scores
        at = ledger.presence.heard[stamp.node, stamp.incarnation]
        # A node's blocks outlive its incarnations: two rows of it contain the same blocks.
        last, *_ = heard.get(stamp.node, (-math.inf,))
        if sketches is not None and sketches.maxima is not None and at >= last:
            maxima = sketches.maxima
            if row.from_client and maxima.span_s > 4 * WINDOW_S:
                continue  # no client keeps so many: it would decide the limits by their number
            if row.from_client and sum(maxima.lengths) > 1:
                maxima = replace(maxima, lengths=())  # a client is one node
            nodes = 0 if row.from_client or row.report.census is None else row.report.census.nodes
            heard[stamp.node] = at, row.from_client, max(1, nodes), maxima
    parts = [(single, maxima) for _, single, _, maxima in heard.values()]
    held = ledger.histories.sketches(ledger.fingerprint)
    parts += [(False, each.maxima) for each in held if each.maxima is not None]
    nodes_of = [nodes for _, _, nodes, _ in heard.values()] + [0] * (len(parts) - len(heard))
    for kind in KINDS:
        middles = sorted(
            quantile(each.of(kind), 0.5)
            for single, each in parts
            if single and each.of(kind).n >= LEAST_BLOCKS
        )
        if len(middles) < LEAST_CLIENTS:
            continue
        most = UNLIKE * middles[len(middles) // 2]
        if sum(middle > most for middle in middles) > MOST_UNLIKE * len(middles):
            continue  # they are another kind of machine, and not faulty
        parts = [
            (single, each.replaced(kind))
            if single and each.of(kind).n >= LEAST_BLOCKS and quantile(each.of(kind), 0.5) > most
            else (single, each)
            for single, each in parts
        ]
    return _evened([each for _, each in parts], nodes_of)


def _evened(parts: list[BlockMaxima], nodes: list[int]) -> list[BlockMaxima]:
    """Return maxima of which no node of five or more gives so many high ones that it decides."""
    for block_s, kind in product(sorted({each.block_s for each in parts}), KINDS):
        alike = [each.block_s == block_s and each.of(kind).n > 0 for each in parts]
        places = [i for i, each in enumerate(alike) if each]
        of = [nodes[i] for i in places]
        if sum(each > 0 for each in of) >= LEAST_CLIENTS:
            sketches = evened([parts[i].of(kind) for i in places], of)
            for i, sketch in zip(places, sketches, strict=True):
                parts[i] = parts[i].replaced(kind, sketch)
    return parts


def latest_row_per_node(ledger: Ledger) -> list[tuple[tuple[str, Incarnation], Row]]:
    """Return the row of each node that was heard last: it stands for the node's others."""
    newest: dict[str, tuple[float, tuple[str, Incarnation]]] = {}
    for key in ledger.rows:
        heard = ledger.presence.heard[key]
        if key[0] not in newest or heard >= newest[key[0]][0]:
            newest[key[0]] = heard, key
    return [(key, ledger.rows[key]) for _, key in newest.values()]


def _bin(seconds: float) -> int:
    return min(BINS - 1, max(0, math.frexp(max(seconds, 1.0))[1] - 1))


def _age(counted: Census, share: float) -> float:
    total, seen = sum(counted.ages), 0
    for i, count in enumerate(counted.ages):
        seen += count
        if seen >= share * total and seen:
            return 2.0 ** (i + 1)
    return 0.0
