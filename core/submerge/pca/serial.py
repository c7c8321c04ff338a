"""dumps() and loads() write a `SAPCA` as bytes and restore it bit for bit (docs/saved.md)."""

from __future__ import annotations

import io
import json
import math
import struct
import tokenize
from collections.abc import Collection
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import numpy as np

from submerge._linalg import Array, Storage, inner
from submerge.errors import PeerError, SubmergeError, UsageError, whole
from submerge.pca.block import Totals
from submerge.pca.budget import most_sums
from submerge.pca.expectation import Estimate, Mask, Sums, absent, lacking
from submerge.pca.rank import EnergyRank, FixedRank, SapcaRank
from submerge.pca.sapca import SAPCA
from submerge.pca.scatter import Scatter
from submerge.pca.subspace import check_values
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Schema

if TYPE_CHECKING:
    import zipfile

TYPES = tuple(map(np.dtype, ("<f8", "<f4", "|u1")))

MOST_HEADER = 4096  # most letters of an array's header; our own have 128

NOT_ZIP = (
    # What zipfile and NumPy's header parser raise on bytes that are not theirs, beside BadZipFile.
    # zipfile raises RuntimeError for flags that mean "encrypted" or "compressed otherwise".
    *(struct.error, EOFError, OSError, RuntimeError, LookupError),
    *(ValueError, TypeError, AttributeError, ArithmeticError, SyntaxError, tokenize.TokenError),
    MemoryError,
)


def arrays_of(data: bytes, names: Collection[str]) -> dict[str, Storage]:
    """Return the arrays in a file by name, read-only, as far as there; PeerError if it is none."""
    import zipfile

    try:
        with zipfile.ZipFile(io.BytesIO(data)) as file:
            return _arrays(file, len(data), {f"{name}.npy": name for name in names})
    except (zipfile.BadZipFile, *NOT_ZIP) as error:
        # NumPy's message advises to allow pickles, so it is not repeated.
        raise PeerError(f"expected a .npz file, got {len(data)} bytes of something else") from error


def _arrays(file: zipfile.ZipFile, size: int, names: dict[str, str]) -> dict[str, Storage]:
    from zipfile import ZIP_STORED

    entries = file.infolist()
    known = {entry.filename for entry in entries}
    if not known <= names.keys() or len(known) < len(entries):
        raise PeerError(f"expected entries of {', '.join(names)}, each at most once")
    stored = all(
        entry.compress_type == ZIP_STORED and entry.file_size == entry.compress_size
        for entry in entries
    )
    if not stored or sum(entry.file_size for entry in entries) > size:
        raise PeerError("expected entries without compression, within the file")
    return {names[entry.filename]: _array(file.read(entry)) for entry in entries}


def _array(data: bytes) -> Storage:
    file = io.BytesIO(data)
    if np.lib.format.read_magic(file) != (1, 0):
        raise PeerError("expected an array of form 1.0")
    shape, by_columns, dtype = np.lib.format.read_array_header_1_0(file, MOST_HEADER)
    rest = data[file.tell() :]
    if dtype not in TYPES or min(shape, default=0) < 0:
        raise PeerError(f"expected an array of float64, float32 or bytes, got {str(dtype)[:40]}")
    if math.prod(shape) * dtype.itemsize != len(rest):
        raise PeerError(f"expected an array of {len(rest)} bytes, got another shape")
    return np.frombuffer(rest, dtype).reshape(shape, order="F" if by_columns else "C")


FORM = 3
"""Form 3 has sums of rows by the channels that they lack; without any, form 2 is written. It has no
block size where none was given; one that was given and cut for the low-rank path stands as it runs,
so that the restored engine goes on with the same blocks.
What a file holds, a scatter or directions, decides which memory is restored."""

INCONSISTENT = (
    *(SubmergeError, LookupError, TypeError, ValueError, AttributeError),
    *(ArithmeticError, RuntimeError, MemoryError, SyntaxError),
)
"""What contents of another shape than ours lead to."""

MOST_ROWS = 1 << 20  # largest block in a saved engine

MOST_BYTES, MOST_NUMBERS = 1 << 30, 1 << 27
"""Largest file that is read, and most numbers of a memory that is allocated before it is filled: a
forged size takes at most 1 GiB."""

LARGEST_SUM = 1e300  # largest sum of squares: that of more would not be finite

ENTRIES = (
    *("about", "mean", "totals", "energies", "waiting", "scatter", "rows", "sigma"),
    *("gaps", "prior", "prior_mean"),
    *("lacking", "lacking_means", "lacking_scatters", "lacking_weights"),
)

GIVEN = ("oversample", "forgetting_factor", "center", "exact", "memory")
"""Parameters of an engine that stand as it has them."""

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
        "form": FORM if isinstance(memory, Scatter) and memory.lacking else 2,
        "rule": {"kind": kinds[0]} | asdict(engine.rule),  # type: ignore[call-overload]
        **{name: getattr(engine, name) for name in GIVEN},
        "block_size": engine.block_size if engine._sized else None,
        "dtype": engine.dtype.name,
        "n_samples_seen": engine.n_samples_seen,
        "fallbacks": engine.fallbacks,
        "target": engine.target,
        "held": engine._choice.held,
        "schema": None if memory is None else engine._schema.canonical.decode(),
    }
    arrays: dict[str, Storage] = {
        "about": np.frombuffer(json.dumps(about, sort_keys=True).encode(), np.uint8)
    }
    if memory is not None:
        mean, weight, energy, dropped, energies = engine._totals
        arrays["mean"] = mean
        arrays["totals"] = np.array([weight, energy, dropped])
        if energies is not None:
            arrays["energies"] = energies
        arrays["waiting"] = memory.room[: engine._waiting]
        if isinstance(memory, Scatter):
            arrays["scatter"] = memory.total
            if memory.gaps is not None:
                arrays["gaps"] = memory.gaps[: engine._waiting].view(np.uint8)
            if memory.is_expected and memory.prior is not None:
                arrays |= {"prior": memory.prior.covariance, "prior_mean": memory.prior.mean}
            if memory.lacking:
                arrays |= _lacking_arrays(memory.lacking)
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
    if len(data) > MOST_BYTES:
        raise PeerError(
            f"a saved SAPCA has at most {MOST_BYTES} bytes, got {len(data)}", kind="oversize"
        )
    arrays = arrays_of(data, ENTRIES)
    try:
        about = json.loads(arrays.pop("about").tobytes())
        form = about["form"]
    except INCONSISTENT as error:
        raise PeerError(f"expected a saved SAPCA, got another .npz file: {error!s:.80}") from error
    if form not in (2, FORM):
        todo = "update submerge"
        if form == 1:
            todo = (
                "submerge before 28 November 2026 wrote it; load and save it with that of that day"
            )
        raise PeerError(
            f"expected a saved SAPCA of form 2 or {FORM}, got form {form!r:.40}: {todo}"
        )
    try:
        with np.errstate(all="ignore"):
            return _restored(about, arrays)
    except INCONSISTENT as error:
        raise PeerError(f"this saved SAPCA contradicts itself: {error!s:.400}") from error


def _restored(about: dict[str, Any], arrays: dict[str, Storage]) -> SAPCA:
    rule = dict(about["rule"])
    schema = None if about["schema"] is None else Schema.parse(about["schema"].encode())
    if schema is not None:
        # This comes before anything of that size is allocated.
        _expect("mean", arrays, (schema.dim,), np.float64)
        _expect("waiting", arrays, (None, schema.dim), None)
        if "scatter" in arrays:
            _expect("scatter", arrays, (schema.dim, schema.dim), np.float64)
    if about["dtype"] not in ("float64", "float32"):  # NumPy would parse any text
        raise PeerError(f"dtype must be float64 or float32, got {about['dtype']!r:.40}")
    engine = SAPCA(
        RULES[rule.pop("kind")](**rule),
        **{name: about[name] for name in (*GIVEN, "block_size", "dtype")},
    )
    if about["center"] is not engine.center:
        raise PeerError(f"center must be true or false, got {about['center']!r}")
    engine.n_samples_seen = whole("n_samples_seen", about["n_samples_seen"], least=0)
    engine.fallbacks = whole("fallbacks", about["fallbacks"], least=0)
    engine._choice.held = whole("held", about["held"], least=0)
    if schema is None:
        return engine
    if engine.center != (schema.center != "none"):
        raise PeerError("its center contradicts its schema")
    if engine.block_size > MOST_ROWS:
        raise PeerError(f"block_size must be at most {MOST_ROWS}, got {engine.block_size}")
    target = whole("target", about["target"], least=engine.rule.lowest)
    if target > min(engine.rule.highest or schema.dim, schema.dim):
        raise PeerError(f"target must be within the rule's limits, got {target}")
    _check_room(engine, target, schema.dim)
    if "scatter" in arrays and engine.exact == "never":
        raise PeerError('its scatter contradicts exact = "never"')
    memory = engine._open(schema, exact="scatter" in arrays)
    engine._choice.rank = target
    engine._totals = _totals(arrays, schema.dim)
    if isinstance(memory, Scatter):
        _expect_scatter(arrays["scatter"], engine.dtype)
        memory.restore(arrays["scatter"], wide=arrays["waiting"].dtype == np.float64)
    else:
        rows, sigma = _expect_directions(arrays, schema.dim, engine.dtype)
        memory.restore(rows, sigma)
    waiting = arrays["waiting"]
    most = engine.patience if "gaps" in arrays else engine.block_size
    if len(waiting) >= most or waiting.dtype != memory.room.dtype:
        raise PeerError(f"waiting must be fewer than {most} rows of {engine.dtype}")
    check_values(waiting)
    memory.write(waiting, np.zeros(schema.dim), at=0)
    if isinstance(memory, Scatter):
        memory.gaps = _gaps(arrays, len(memory.room), waiting)
        memory.prior = _prior(arrays, schema.dim)
        memory.lacking = _lacking(arrays, schema)
        memory.gapped = memory.is_expected
    engine._waiting = len(waiting)
    return engine


def _gaps(arrays: dict[str, Storage], size: int, waiting: Storage) -> Mask | None:
    """Return which values of the waiting rows are guesses, (size, dim)."""
    if "gaps" not in arrays:
        return None
    gaps, dim = arrays["gaps"], waiting.shape[1]
    if gaps.shape != waiting.shape or gaps.dtype != np.uint8 or not gaps.any() or gaps.max() > 1:
        raise PeerError(f"gaps must be 0 or 1 and of shape {waiting.shape}, got {gaps.shape}")
    marked = np.zeros((size, dim), dtype=bool)
    marked[: len(gaps)] = gaps
    return marked


def _prior(arrays: dict[str, Storage], dim: int) -> Estimate | None:
    if "prior" not in arrays:
        return None
    _expect("prior", arrays, (dim, dim), np.float64)
    _expect_scatter(arrays["prior"], np.float64)
    mean = arrays.get("prior_mean", arrays["mean"])  # earlier versions kept none
    _expect("prior_mean", {"prior_mean": mean}, (dim,), np.float64)
    check_values(mean)
    return Estimate(mean.copy(), arrays["prior"].copy(), np.ones(dim, dtype=bool))


def _lacking_arrays(lacking: Sums) -> dict[str, Storage]:
    parts = list(lacking.values())
    return {
        "lacking": np.array([absent(key, parts[0].dim) for key in lacking]).view(np.uint8),
        "lacking_means": np.array([part.mean for part in parts]),
        "lacking_scatters": np.array([part.scatter for part in parts]),
        "lacking_weights": np.array([part.weight for part in parts]),
    }


def _lacking(arrays: dict[str, Storage], schema: Schema) -> dict[bytes, WholeScatter]:
    if "lacking" not in arrays:
        return {}
    n, dim = len(arrays["lacking"]), schema.dim
    _expect("lacking", arrays, (min(n, most_sums(dim) + 1), dim), np.uint8)
    _expect("lacking_means", arrays, (n, dim), np.float64)
    _expect("lacking_scatters", arrays, (n, dim, dim), np.float64)
    _expect("lacking_weights", arrays, (n,), np.float64)
    check_values(arrays["lacking_means"])
    weights = arrays["lacking_weights"]
    if not ((weights > 0) & (weights <= LARGEST_SUM)).all():
        raise PeerError(f"weights must be above 0 and at most {LARGEST_SUM:g}")
    found = {}
    for gone, mean, scatter, weight in zip(
        arrays["lacking"].astype(bool),
        arrays["lacking_means"],
        arrays["lacking_scatters"],
        weights,
        strict=True,
    ):
        _expect_scatter(scatter, np.float64)
        if not gone.any() or scatter[gone].any():
            raise PeerError("a sum of rows with gaps must be zero where channels are absent")
        energies = scatter.diagonal().copy()
        found[lacking(gone)] = WholeScatter(
            schema.fingerprint,
            scatter.copy(),
            mean.copy(),
            float(weight),
            float(energies.sum()),
            0.0,
            energies,
        )
    return found


def _totals(arrays: dict[str, Storage], dim: int) -> Totals:
    _expect("totals", arrays, (3,), np.float64)
    if not ((arrays["totals"] >= 0) & (arrays["totals"] <= LARGEST_SUM)).all():
        raise PeerError(f"totals must be from 0 to {LARGEST_SUM:g}")
    weight, energy, dropped = (float(x) for x in arrays["totals"])
    return Totals(arrays["mean"].copy(), weight, energy, dropped, _energies(arrays, dim))


def _energies(arrays: dict[str, Storage], dim: int) -> Storage | None:
    """Return channels' energies; an earlier file has them only as an exact scatter's diagonal."""
    if "energies" not in arrays:
        known = "scatter" in arrays and not arrays["totals"][2]
        return np.maximum(arrays["scatter"].diagonal(), 0.0) if known else None
    _expect("energies", arrays, (dim,), np.float64)
    energies = arrays["energies"]
    if not ((energies >= 0) & (energies <= LARGEST_SUM)).all():
        raise PeerError(f"energies must be from 0 to {LARGEST_SUM:g}")
    return energies.copy()


def _check_room(engine: SAPCA, target: int, dim: int) -> None:
    """Refuse a memory that would take far more numbers than a file has."""
    kept = min(max(target, engine.rule.start) + engine.oversample, dim)
    # A scatter is in the file, with all of its numbers.
    room = (kept + engine.block_size) * dim
    if room > MOST_NUMBERS:
        raise PeerError(f"its memory must be of at most {MOST_NUMBERS} numbers, got {room}")


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


def _expect_scatter(scatter: Array, dtype: Any) -> None:
    if not np.abs(scatter).max() <= LARGEST_SUM:
        raise PeerError(f"scatter must be at most {LARGEST_SUM:g}")
    lam = np.linalg.eigvalsh(scatter)
    # Float32 products leave rounding of that size. NaN fails every comparison.
    slack = 1e-9 if dtype == np.float64 else 1e-5
    if not lam[0] >= -slack * max(lam[-1], 1e-300):
        raise PeerError("scatter must be positive semi-definite")


def _expect_directions(arrays: dict[str, Storage], dim: int, dtype: Any) -> tuple[Storage, Storage]:
    """Return rows and sigma, if they are orthonormal rows with descending weights."""
    k = len(arrays["sigma"])
    _expect("sigma", arrays, (min(k, dim),), np.float64)
    _expect("rows", arrays, (k, dim), dtype)
    rows, sigma = arrays["rows"], arrays["sigma"]
    if not ((sigma > 0).all() and (np.diff(sigma) <= 0).all()):
        raise PeerError("sigma must be positive and descending")
    if k and not sigma[0] <= LARGEST_SUM**0.5:
        raise PeerError(f"sigma must be at most {LARGEST_SUM**0.5:g}")
    if k and not np.abs(inner(rows) - np.eye(k)).max() <= 1e-3:
        raise PeerError("rows must be orthonormal")
    return rows, sigma.copy()
