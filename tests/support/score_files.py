"""A small model, files to score by it, and what is written of them."""

from __future__ import annotations

import csv
import io
from dataclasses import replace
from pathlib import Path

import numpy as np

from submerge import Channel, Scaling, Schema, Subspace, hotelling, spe
from submerge.history.knowledge import Learnt
from submerge.protocol.messages import Counts, Model
from submerge.stats.score_limits import Limits
from submerge_aggregator.questions.views import ShownRank
from submerge_files.model_file import save
from support.nodes import EPOCH

NAMES = tuple("abcdef")
DIM, RANK = len(NAMES), 2
SCHEMA = Schema(
    tuple(Channel(name, "bar") for name in NAMES),
    scaling=Scaling((20.0,) * DIM, (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)),
)
MIX = np.random.default_rng(1).normal(size=(RANK, DIM)) * SCHEMA.scaling.scale
SHARES = (0.5, 0.95, 0.99, 0.999)


def some_rows(n: int, seed: int = 0, *, shift: float = 0.0) -> np.ndarray:
    """Rows along two directions, and a little noise; numbers that text keeps to the last digit."""
    rng = np.random.default_rng(seed)
    return np.round(rng.normal(size=(n, RANK)) @ MIX + 0.1 * rng.normal(size=(n, DIM)) + 20, 4) + (
        shift
    )


LEARNT = some_rows(400, 7)


def learnt(schema: Schema = SCHEMA, rows: np.ndarray = LEARNT) -> Subspace:
    """What a root sends: spares, and float32 columns."""
    held = Subspace.of(rows, schema, rank=RANK + 2)
    return replace(held, basis=held.basis.astype(np.float32))


def model_of(schema: Schema = SCHEMA, **fields: object) -> Model:
    reported = {
        "group": "pumps",
        "version": 17,
        "schema": schema.canonical,
        "fingerprint": schema.fingerprint,
        "summary": None,
        "limits": None,
        "counts": Counts(400, 0, 0),
        "nodes": 2,
        "staleness": (1.0, 1.0, 1.0),
        "created": EPOCH,
        "expires": EPOCH + 3000,
    }
    return Model(**reported | fields)


def limits_of(schema: Schema, held: Subspace) -> Limits:
    X, shown = schema.scaled(some_rows(2000, 8)), held.truncated(RANK)
    return Limits(
        SHARES,
        tuple(map(float, np.quantile(spe(X, shown), SHARES))),
        tuple(map(float, np.quantile(hotelling(X, shown), SHARES))),
        2000,
    )


LIMITS = limits_of(SCHEMA, learnt())


SHOWN = ShownRank(RANK)


def kept(path: Path, schema: Schema, *, shown: ShownRank | None = SHOWN, monitors=(), **fields):
    """Save a model, with what it knows of machines."""
    save(path, Learnt(model_of(schema, **fields), monitors=monitors), shown)
    return path


def written(path, rows: np.ndarray, names=NAMES):
    """A CSV with a heading; NaN is an empty field."""
    with path.open("w", newline="") as file:
        write = csv.writer(file).writerow
        write(names)
        for row in rows.tolist():
            write(["" if value != value else repr(value) for value in row])
    return path


def table(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def column(lines: list[dict[str, str]], name: str) -> np.ndarray:
    return np.array([float(line[name] or "nan") for line in lines])
