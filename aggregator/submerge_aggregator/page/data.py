"""Data of the page that the admin API has not in this form, and what has changed."""

from __future__ import annotations

import gzip
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache

import msgspec
import numpy as np
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge_aggregator.http.serving import as_json, path_names, query_names, whole
from submerge_aggregator.operators.scopes import ApiCall, objection
from submerge_aggregator.page.calls import CallRefused
from submerge_aggregator.page.fleet_tree import one_node
from submerge_aggregator.page.watched import Watched
from submerge_proto.files import learnt as learnt_file

MOST_CHANNELS, MOST_DIRECTIONS = 512, 64
"""Of a model with more, those with the largest parts are shown."""

DIGITS = 5


@dataclass(frozen=True, slots=True)
class DirectionView:
    """One direction of normal variation."""

    share: float  # of all variation, kept and discarded
    scored: bool  # whether nodes score with it; else it is a spare one
    loadings: list[float]  # signed, by channel, in the order of the channels


@dataclass(frozen=True, slots=True)
class ModelView:
    """A model."""

    group: str
    version: int
    fingerprint: str
    created_s: float
    expires_s: float
    learnt: int
    withheld: int
    lost: int
    nodes: int
    epsilon: float  # that the group's models have spent; 0 without noise
    rank: int  # directions that nodes score with; 0 if their configuration says it
    widened: float
    channels: list[str]  # that are shown; with lags each counts several times
    units: list[str]
    left_out: int
    directions: list[DirectionView]
    rest: float  # share of all variation that no direction has: a bound on one more
    noise: list[float]  # standard deviation by channel, scaled; empty if not known
    shares: list[float]
    limits: dict[str, list[float]]  # by statistic, for each of `shares`


def model_view(data: bytes) -> ModelView:
    """Return what the bytes of a model hold; raises PeerError if they are no model."""
    model, schema = learnt_file.model_of(data)
    parts = () if model.summary is None else model.summary.parts
    summary = parts[-1] if parts else None
    names = list(schema.names)
    basis = np.zeros((len(names), 0)) if summary is None else np.asarray(summary.basis, np.float64)
    shares = np.zeros(0)
    if summary is not None and summary.energy > 0:
        shares = summary.sigma**2 / summary.energy
    # The channels with the largest parts in what varies most, in their own order.
    weight = np.sqrt((basis**2 * shares[: basis.shape[1]]).sum(axis=1))
    chosen = np.sort(np.argsort(-weight, kind="stable")[:MOST_CHANNELS])
    noise = np.sqrt(model.factors[-1].noise) if model.factors else np.zeros(0)
    limits, of = dict[str, list[float]](), model.limits
    if of is not None:
        kinds = {"distance": of.distance, "spe": of.spe, "t2": of.t2, "linear": of.linear}
        limits = {kind: _short(np.asarray(each)) for kind, each in kinds.items() if len(each or ())}
    return ModelView(
        model.group,
        model.version,
        model.fingerprint,
        model.created,
        model.expires,
        model.counts.learnt,
        model.counts.withheld,
        model.counts.lost,
        model.nodes,
        model.epsilon,
        model.rank,
        model.widened,
        [names[j] for j in chosen],
        [schema.named[j].unit for j in chosen],
        len(names) - len(chosen),
        [
            DirectionView(
                _rounded(share), not model.rank or i < model.rank, _short(basis[chosen, i])
            )
            for i, share in enumerate(shares[:MOST_DIRECTIONS].tolist())
        ],
        _rounded(max(0.0, 1.0 - float(shares.sum()))) if summary is not None else 0.0,
        _short(noise[chosen]) if len(noise) == len(names) else [],
        [] if of is None else [_rounded(each) for each in of.shares],
        limits,
    )


def _short(values: np.ndarray) -> list[float]:
    return [_rounded(each) for each in values.tolist()]


def _rounded(value: float) -> float:
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else 0.0


HOURS = 24
"""How far back scores are shown, unless a page asks otherwise."""

LEAST_COMPRESSED = 1024
"""Bytes of an answer that is worth compressing."""

MOST_COMPRESSED = 4
"""Answers that are kept compressed: one of 20,000 nodes takes 0.1 s, and many pages ask for it."""


def routes(watched: Watched) -> list[Route]:
    async def fleet(request: Request) -> Response:
        body = await watched.trees.body(_group(request, "/tree/{group}"))
        return _json(request, body, compressed=_kept_compressed)

    async def node(request: Request) -> Response:
        group = _group(request, "/tree/{group}")
        (name,) = query_names(request, "node")
        if name is None:
            raise CallRefused(400, "expected the name of a node, got none")
        path = request.query_params.get("path", "")  # the admin API looks at it
        found = await one_node(watched.calls, group, path, name, watched.wall())
        return _json(request, msgspec.json.encode(found))

    async def scores(request: Request) -> Response:
        group = _group(request, "/scores/{group}")
        body = await watched.scores.body(group, whole(request, "hours", HOURS))
        return _json(request, body, compressed=_kept_compressed)

    async def model(request: Request) -> Response:
        group = _group(request, "/model/{group}")
        data = await watched.calls.get(f"/model/{group}")
        return _json(request, msgspec.json.encode(model_view(data)))

    async def marks(_: Request) -> Response:
        return as_json(await watched.marks())

    return [
        Route("/data/fleet/{group}", fleet),
        Route("/data/node/{group}", node),
        Route("/data/scores/{group}", scores),
        Route("/data/model/{group}", model),
        Route("/data/marks", marks),
    ]


def _group(request: Request, like: str) -> str:
    """Return the group in a path, if this operator may see it by the admin API's route `like`."""
    (group,) = path_names(request, "group")
    operator = request.scope["operator"]
    call = ApiCall("GET", like, {"group": group}, {})
    why = objection(operator.scope, operator.groups, call)
    if why is not None:
        raise CallRefused(403, why)
    return group


def _compressed(body: bytes) -> bytes:
    return gzip.compress(body, 5, mtime=0)


_kept_compressed = lru_cache(MOST_COMPRESSED)(_compressed)
"""For bodies that all who look at once get."""


def _json(
    request: Request, body: bytes, *, compressed: Callable[[bytes], bytes] = _compressed
) -> Response:
    if len(body) < LEAST_COMPRESSED or "gzip" not in request.headers.get("accept-encoding", ""):
        return Response(body, media_type="application/json")
    headers = {"content-encoding": "gzip", "vary": "accept-encoding"}
    return Response(compressed(body), 200, headers, "application/json")
