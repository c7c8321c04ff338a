"""dumps() and loads() write a `SAPCA` as bytes and restore it bit for bit.

A restored engine continues as if it had never stopped: the same rows then give the
same bytes. The form is NumPy's `.npz` (a zip of arrays, no pickle); docs/saved.md
lists every entry. A file's contents are checked before they are used. This module alone
may read a `SAPCA`'s private attributes.
"""

from __future__ import annotations

import io
import json
import struct
import zlib
from dataclasses import asdict
from typing import Any

import numpy as np

from submerge._linalg import Storage, inner
from submerge.errors import PeerError, SubmergeError, UsageError, whole
from submerge.pca.block import Totals
from submerge.pca.rank import EnergyRank, FixedRank, SapcaRank
from submerge.pca.sapca import SAPCA
from submerge.pca.scatter import Scatter
from submerge.pca.subspace import check_values
from submerge.schema import Schema

FORM = 1
UNREADABLE = (
    # What zipfile, zlib and NumPy's header parser raise on bytes that are not theirs.
    # zipfile raises RuntimeError for flags that mean "encrypted" or "compressed otherwise".
    *(ValueError, KeyError, TypeError, EOFError, OSError, RuntimeError, SyntaxError),
    *(MemoryError, OverflowError),  # a header that claims more data than the file has
    *(struct.error, zlib.error),
)
INCONSISTENT = (SubmergeError, KeyError, TypeError, ValueError, AttributeError, OverflowError)
MOST_ROWS = 1 << 20
"""Largest block in a saved engine: no memory is allocated for a forged larger size."""

RULES: dict[str, Any] = {"fixed": FixedRank, "sapca": SapcaRank, "energy": EnergyRank}


def dumps(engine: SAPCA) -> bytes:
    """Return the whole state of `engine`, with the rows that wait for a full block."""
    kinds = [kind for kind, rule in RULES.items() if type(engine.rule) is rule]
    if not kinds:
        raise UsageError(
            f"only engines with {', '.join(r.__name__ for r in RULES.values())} can be saved,"
            f" got {type(engine.rule).__name__}"
        )
    memory = engine._memory
    about = {
        "form": FORM,
        "rule": {"kind": kinds[0]} | asdict(engine.rule),  # type: ignore[call-overload]
        "oversample": engine.oversample,
        "forgetting_factor": engine.forgetting_factor,
        "center": engine.center,
        "block_size": engine.block_size,
        "exact": engine.exact,
        "dtype": engine.dtype.name,
        "n_samples_seen": engine.n_samples_seen,
        "fallbacks": engine.fallbacks,
        "target": engine._target,
        "held": engine._held,
        "schema": None if memory is None else engine._schema.canonical.decode(),
    }
    arrays: dict[str, Storage] = {
        "about": np.frombuffer(json.dumps(about, sort_keys=True).encode(), np.uint8)
    }
    if memory is not None:
        mean, weight, energy, dropped = engine._totals
        arrays["mean"] = mean
        arrays["totals"] = np.array([weight, energy, dropped])
        arrays["waiting"] = memory.room[: engine._waiting]
        if isinstance(memory, Scatter):
            arrays["scatter"] = memory.total
        else:
            arrays["rows"], arrays["sigma"] = memory.rows, memory.sigma
    file = io.BytesIO()
    np.savez(file, **arrays)  # type: ignore[arg-type]
    return file.getvalue()


def loads(data: bytes) -> SAPCA:
    """Return the engine that `dumps` wrote.

    Raises
    ------
    PeerError
        If the bytes are not a saved engine, or damaged, or of a later form.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
        form = about["form"]
    except _unreadable() as error:
        # NumPy's message advises to allow pickles, so it is not repeated.
        raise PeerError(
            f"expected a saved SAPCA (.npz), got {len(data)} bytes of something else, or damaged"
        ) from error
    if form != FORM:
        raise PeerError(f"expected a saved SAPCA of form {FORM}, got form {form}: update submerge")
    try:
        return _restored(about, arrays)
    except INCONSISTENT as error:
        raise PeerError(f"this saved SAPCA contradicts itself: {error}") from error


def _unreadable() -> tuple[type[Exception], ...]:
    """Return `UNREADABLE` and two more, imported here: a client never saves this way."""
    import tokenize
    import zipfile

    return *UNREADABLE, zipfile.BadZipFile, tokenize.TokenError


def _restored(about: dict[str, Any], arrays: dict[str, Storage]) -> SAPCA:
    rule = dict(about["rule"])
    schema = None if about["schema"] is None else Schema.parse(about["schema"].encode())
    if schema is not None:
        # This comes before anything of that size is allocated.
        _expect("mean", arrays, (schema.dim,), np.float64)
        _expect("waiting", arrays, (None, schema.dim), None)
    engine = SAPCA(
        RULES[rule.pop("kind")](**rule),
        oversample=about["oversample"],
        forgetting_factor=about["forgetting_factor"],
        center=about["center"],
        block_size=about["block_size"],
        exact=about["exact"],
        dtype=about["dtype"],
    )
    if about["center"] is not engine.center:
        raise PeerError(f"center must be true or false, got {about['center']!r}")
    engine.n_samples_seen = whole("n_samples_seen", about["n_samples_seen"], least=0)
    engine.fallbacks = whole("fallbacks", about["fallbacks"], least=0)
    engine._held = whole("held", about["held"], least=0)
    if schema is None:
        return engine
    if engine.center != (schema.center != "none"):
        raise PeerError("its center contradicts its schema")
    if engine.block_size > MOST_ROWS:
        raise PeerError(f"block_size must be at most {MOST_ROWS}, got {engine.block_size}")
    target = whole("target", about["target"], least=engine.rule.lowest)
    if target > min(engine.rule.highest or schema.dim, schema.dim):
        raise PeerError(f"target must be within the rule's limits, got {target}")
    memory = engine._open(schema)
    engine._target = target
    _expect("totals", arrays, (3,), np.float64)
    if not (arrays["totals"] >= 0).all():
        raise PeerError("totals must not be negative")
    engine._totals = Totals(arrays["mean"], *(float(x) for x in arrays["totals"]))
    if isinstance(memory, Scatter):
        _expect("scatter", arrays, (schema.dim, schema.dim), np.float64)
        lam = np.linalg.eigvalsh(arrays["scatter"])
        if lam[0] < -1e-9 * max(lam[-1], 1e-300):
            raise PeerError("scatter must be positive semi-definite")
        memory.total = arrays["scatter"]
    else:
        rows, sigma = _expect_directions(arrays, schema.dim, engine.dtype)
        memory.restore(rows, sigma)
    waiting = arrays["waiting"]
    if len(waiting) >= engine.block_size or waiting.dtype != memory.room.dtype:
        raise PeerError(f"waiting must be fewer than {engine.block_size} rows of {engine.dtype}")
    check_values(waiting)
    memory.room[: len(waiting)] = waiting
    engine._waiting = len(waiting)
    return engine


def _expect(
    name: str, arrays: dict[str, Storage], shape: tuple[int | None, ...], dtype: Any
) -> None:
    """Refuse an entry of another shape or type, or with a value that is not finite."""
    array = arrays[name]
    alike = len(array.shape) == len(shape) and all(
        wanted in (None, got) for wanted, got in zip(shape, array.shape, strict=True)
    )
    right = array.dtype in (np.float64, np.float32) if dtype is None else array.dtype == dtype
    if not alike or not right or not np.isfinite(array).all():
        raise PeerError(f"{name} must be finite and of shape {shape}, got {array.shape}")


def _expect_directions(arrays: dict[str, Storage], dim: int, dtype: Any) -> tuple[Storage, Storage]:
    """Return rows and sigma, if they are orthonormal rows with descending weights."""
    k = len(arrays["sigma"])
    _expect("sigma", arrays, (min(k, dim),), np.float64)
    _expect("rows", arrays, (k, dim), dtype)
    rows, sigma = arrays["rows"], arrays["sigma"]
    if not ((sigma > 0).all() and (np.diff(sigma) <= 0).all()):
        raise PeerError("sigma must be positive and descending")
    if k and np.abs(inner(rows) - np.eye(k)).max() > 1e-3:
        raise PeerError("rows must be orthonormal")
    return rows, sigma
