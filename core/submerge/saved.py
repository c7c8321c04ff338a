"""dumps(), loads(): a `SAPCA` as bytes, and back, bit for bit.

A restored engine goes on as if it had never stopped: the same rows then give the
same bytes. The form is NumPy's `.npz` (a zip of arrays, no pickle); docs/saved.md
lists every entry. What a file says is checked before it is believed.
"""

from __future__ import annotations

import io
import json
import struct
import tokenize
import zipfile
import zlib
from dataclasses import asdict
from typing import Any

import numpy as np

from submerge._linalg import Storage
from submerge.block import Totals
from submerge.errors import PeerError, SubmergeError, UsageError
from submerge.rank import EnergyRank, FixedRank, RankRule, SapcaRank
from submerge.sapca import SAPCA
from submerge.scatter import Scatter
from submerge.schema import Schema

FORM = 1
UNREADABLE = (
    # What zipfile, zlib and NumPy's header parser raise on bytes that are not theirs;
    # RuntimeError is zipfile's for flags that say "encrypted" or "compressed otherwise".
    *(ValueError, KeyError, TypeError, EOFError, OSError, RuntimeError, SyntaxError),
    *(struct.error, zlib.error, zipfile.BadZipFile, tokenize.TokenError),
)
RULES: dict[str, Any] = {"fixed": FixedRank, "sapca": SapcaRank, "energy": EnergyRank}


def dumps(engine: SAPCA) -> bytes:
    """Return all that `engine` is, rows that wait for a full block included."""
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
        If the bytes are something else, damaged, or of a later form.
    """
    try:
        with np.load(io.BytesIO(data), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
        form = about["form"]
    except UNREADABLE as error:
        # Not in NumPy's words: they advise to allow pickles.
        raise PeerError(
            f"expected a saved SAPCA (.npz), got {len(data)} bytes of something else, or damaged"
        ) from error
    if form != FORM:
        raise PeerError(f"expected a saved SAPCA of form {FORM}, got form {form}: update submerge")
    try:
        return _restored(about, arrays)
    except (SubmergeError, KeyError, TypeError, ValueError) as error:
        raise PeerError(f"this saved SAPCA contradicts itself: {error}") from error


def _restored(about: dict[str, Any], arrays: dict[str, Storage]) -> SAPCA:
    rule = dict(about["rule"])
    restored: RankRule = RULES[rule.pop("kind")](**rule)
    engine = SAPCA(
        restored,
        oversample=about["oversample"],
        forgetting_factor=about["forgetting_factor"],
        center=about["center"],
        block_size=about["block_size"],
        exact=about["exact"],
        dtype=about["dtype"],
    )
    engine.n_samples_seen = int(about["n_samples_seen"])
    engine.fallbacks = int(about["fallbacks"])
    engine._target = int(about["target"])
    engine._held = int(about["held"])
    if about["schema"] is None:
        return engine
    schema = Schema.parse(about["schema"].encode())
    dim, waiting = schema.dim, len(arrays["waiting"])
    memory = engine._open(schema)
    expected = {"mean": (dim,), "totals": (3,), "waiting": (min(waiting, engine.block_size), dim)}
    if isinstance(memory, Scatter):
        expected["scatter"] = (dim, dim)
    else:
        k = len(arrays["sigma"])
        expected |= {"rows": (k, dim), "sigma": (k,)}
    for name, shape in expected.items():
        if arrays[name].shape != shape or not np.isfinite(arrays[name]).all():
            raise PeerError(f"{name} must be finite and of shape {shape}")
    engine._totals = Totals(arrays["mean"], *(float(x) for x in arrays["totals"]))
    if isinstance(memory, Scatter):
        memory.total = arrays["scatter"]
    else:
        memory.restore(arrays["rows"], arrays["sigma"])
    memory.room[:waiting] = arrays["waiting"]
    engine._waiting = waiting
    return engine
