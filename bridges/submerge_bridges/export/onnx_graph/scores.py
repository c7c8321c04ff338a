"""Scores of single rows, as nodes: what `export.recipe` says, for all rows of a batch at once.

1. Readings are scaled and centered as float64, in a model of float32 too: a mean that is large
   beside what varies would otherwise take the digits of a score.
2. A refused row goes on as the mean, and its results are replaced by NaN at the end.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from submerge.stats.block_maxima import By
from submerge_bridges.export.interpreter import GAPS, SCORED, TOO_LARGE
from submerge_bridges.export.onnx_graph.nodes import GraphNodes
from submerge_bridges.export.recipe import Recipe

OWN = 0.05
"""Share of y that is left of a channel, below which float32 is refined, as in C."""


class ScoreNodes(NamedTuple):
    """Names of results.

    fine : (n,) of bool, rows that have scores
    scores : by kind, (n,); those of refused rows are of the mean
    """

    fine: str
    scores: dict[By, str]


def add_scores(nodes: GraphNodes, recipe: Recipe, rows: str) -> ScoreNodes:
    """Add the nodes that score rows (n, d), and the outputs that need no state."""
    centered, status = _centered(nodes, recipe, rows)
    y = nodes.add("Mul", centered, nodes.numbers(recipe.inverse_roots))
    loads = nodes.add("MatMul", y, nodes.numbers(recipe.loadings))
    z = nodes.add("Mul", loads, nodes.numbers(recipe.gains))
    held = nodes.add("MatMul", z, nodes.numbers(np.ascontiguousarray(recipe.loadings.T)))
    off = _refined(nodes, recipe, y, nodes.add("Sub", y, held))
    squares = nodes.add("Mul", off, off)
    scores: dict[By, str] = {}
    if recipe.by_distance:
        inside = nodes.sum_of(nodes.add("Mul", z, z))
        both = nodes.add("Add", nodes.sum_of(squares), inside)
        scores["distance"] = nodes.add("Div", both, nodes.numbers(recipe.excess))
    scores |= _of_directions(nodes, recipe, centered)
    if "channel" in recipe.computed:
        weighted = nodes.add("Mul", squares, nodes.numbers(recipe.channel_weights))
        scores["channel"] = nodes.add("ReduceMax", weighted, axes=[1], keepdims=0)
    fine = _finite(nodes, list(scores.values()), status)
    for kind in recipe.computed:
        nodes.add("Where", fine, scores[kind], nodes.numbers(np.nan), out=kind)
    for kind in recipe.limits:
        _add_passed(nodes, recipe, kind, scores[kind], fine)
    _add_blame(nodes, recipe, off, squares, fine)
    return ScoreNodes(fine, scores)


def _centered(nodes: GraphNodes, recipe: Recipe, rows: str) -> tuple[str, str]:
    """Scale and center rows; return them, and their status."""
    from onnx import TensorProto

    known = {name: getattr(recipe, name) for name in ("offset", "scale", "mean")}
    offset, scale, mean = (nodes.constant(np.asarray(each, np.float64)) for each in known.values())
    readings = nodes.add("Cast", rows, to=TensorProto.DOUBLE)
    scaled = nodes.add("Div", nodes.add("Sub", readings, offset), scale)
    infinite = nodes.any_of(nodes.add("IsInf", scaled), 1)
    gaps = nodes.any_of(nodes.add("IsNaN", scaled), 1)
    largest = nodes.constant(np.asarray(recipe.largest, np.float64))
    small = nodes.add("Less", nodes.add("Abs", scaled), largest)
    large = nodes.any_of(nodes.add("Not", small), 1)
    status = nodes.add("Where", large, nodes.whole(TOO_LARGE), nodes.whole(SCORED))
    status = nodes.add("Where", gaps, nodes.whole(GAPS), status)
    status = nodes.add("Where", infinite, nodes.whole(TOO_LARGE), status)
    fine = nodes.add("Equal", status, nodes.whole(SCORED))
    column = nodes.add("Unsqueeze", fine, nodes.whole([1]))
    centered = nodes.add("Where", column, nodes.add("Sub", scaled, mean),
                         nodes.constant(np.zeros((), np.float64)))  # fmt: skip
    return nodes.add("Cast", centered, to=nodes.kind), status


def _refined(nodes: GraphNodes, recipe: Recipe, y: str, off: str) -> str:
    """Return what factors leave of y, with the digits that float32 has lost.

    That is a difference of two numbers that are nearly the same where a channel has a factor to
    itself. There it is y times a row of I - L G L', computed in float64.
    """
    own = 1 / (recipe.error_weights * recipe.inverse_roots)
    which = np.flatnonzero(own < OWN)
    if nodes.dtype != np.float32 or not len(which):
        return off
    rows = np.eye(recipe.dim) - (recipe.loadings * recipe.gains) @ recipe.loadings.T
    exact = nodes.add("MatMul", y, nodes.numbers(np.ascontiguousarray(rows[which].T)))
    places = np.arange(recipe.dim)
    places[which] = recipe.dim + np.arange(len(which))
    both = nodes.add("Concat", off, exact, axis=1)
    return nodes.add("Gather", both, nodes.whole(places), axis=1)


def _finite(nodes: GraphNodes, scores: Sequence[str], status: str) -> str:
    """Add the output `status`; return which rows have scores, all of them finite.

    In float32, squares of what is not too large may be.
    """
    most = nodes.add("Max", *scores)
    infinite = nodes.add("Not", nodes.add("Less", most, nodes.numbers(np.inf)))
    scored = nodes.add("Equal", status, nodes.whole(SCORED))
    large = nodes.add("And", scored, infinite)
    nodes.add("Where", large, nodes.whole(TOO_LARGE), status, out="status")
    return nodes.add("And", scored, nodes.add("Not", infinite))


def _of_directions(nodes: GraphNodes, recipe: Recipe, centered: str) -> dict[By, str]:
    """Add SPE and T2, as far as the recipe has them."""
    found: dict[By, str] = {}
    v = nodes.add("MatMul", centered, nodes.numbers(recipe.basis))
    excess = nodes.numbers(recipe.excess)
    if "spe" in recipe.scores:
        held = nodes.add("MatMul", v, nodes.numbers(np.ascontiguousarray(recipe.basis.T)))
        rest = nodes.add("Sub", centered, held)
        spe = nodes.add("Div", nodes.sum_of(nodes.add("Mul", rest, rest)), excess)
        if recipe.complete:
            spe = nodes.add("Mul", spe, nodes.numbers(0.0))
        found["spe"] = spe
    if "t2" in recipe.scores:
        variances = nodes.add("Mul", nodes.add("Mul", v, v), nodes.numbers(recipe.t2_weights))
        found["t2"] = nodes.add("Div", nodes.sum_of(variances), excess)
    return found


def _add_passed(nodes: GraphNodes, recipe: Recipe, kind: By, score: str, fine: str) -> None:
    """Add the output `passed_...`: the highest share whose limit a score is above."""
    steps = recipe.limits[kind]
    column = nodes.add("Unsqueeze", score, nodes.whole([1]))
    above = nodes.add("Greater", column, nodes.numbers(steps.values))
    shares = nodes.add("Where", above, nodes.numbers(steps.shares), nodes.numbers(0.0))
    most = nodes.add("ReduceMax", shares, axes=[1], keepdims=0)
    nodes.add("Where", fine, most, nodes.numbers(np.nan), out=f"passed_{kind}")


def _add_blame(nodes: GraphNodes, recipe: Recipe, off: str, squares: str, fine: str) -> None:
    """Add the outputs `blame`, `share` and `deviation`."""
    weighted = nodes.add("Mul", squares, nodes.numbers(recipe.blame_weights))
    first = nodes.add("ArgMax", weighted, axis=1, keepdims=1)
    total, zero = nodes.sum_of(weighted), nodes.numbers(0.0)
    some = nodes.add("And", nodes.add("Greater", total, zero), fine)

    def of_first(values: str) -> str:
        column = nodes.add("GatherElements", values, first, axis=1)
        return nodes.add("Squeeze", column, nodes.whole([1]))

    index = nodes.add("Squeeze", first, nodes.whole([1]))
    nodes.add("Where", some, index, nodes.whole(-1), out="blame")
    over = nodes.add("Where", some, total, nodes.numbers(1.0))
    share = nodes.add("Div", of_first(weighted), over)
    nodes.add("Where", fine, share, nodes.numbers(np.nan), out="share")
    errors = nodes.add("Mul", off, nodes.numbers(recipe.error_weights * recipe.scale))
    nodes.add("Where", fine, of_first(errors), nodes.numbers(np.nan), out="deviation")
