"""CLeaf: the leaf in C as a Python object, for tests, and to try it out on a computer.

`build` compiles the sources as they are for a device, into a shared library.
"""

from __future__ import annotations

import ctypes as c
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from schema_header import label
from submerge import Schema
from submerge_proto.wire.codec import Kind

HERE = Path(__file__).parent
SOURCES = tuple(HERE / f"{name}.c" for name in ("submerge_leaf", "sums", "scorer", "wire"))
FLAGS = ("-std=c99", "-O2", "-ffp-contract=off", "-Wall", "-Wextra", "-Wpedantic", "-Werror")

CHANNELS, CENTERS = 32, ("fleet", "own", "none")
PAIRS = CHANNELS * (CHANNELS + 1) // 2
UP: tuple[Kind, ...] = ("join", "report")
DOWN = ("joined", "answer", "hello", "model")

Array = npt.NDArray[np.float64]


class Now(c.Structure):
    _fields_ = (("steady_s", c.c_double), ("wall_s", c.c_double), ("synced", c.c_int))


class _Schema(c.Structure):
    _fields_ = (
        *(("dim", c.c_int), ("center", c.c_int), ("half_life_s", c.c_double)),
        *(("text", c.c_char_p), ("fingerprint", c.c_char_p)),
        ("channels", c.POINTER(c.c_char_p)),
        *(("offset", c.POINTER(c.c_double)), ("scale", c.POINTER(c.c_double))),
    )


class _Config(c.Structure):
    _fields_ = (
        *(("node", c.c_char_p), ("group", c.c_char_p), ("parent", c.c_char_p)),
        ("schema", c.POINTER(_Schema)),
        *(("report_every_s", c.c_double), ("patience_s", c.c_double), ("cap_s", c.c_double)),
        *(("min_rows", c.c_uint32), ("min_new_rows", c.c_uint32)),
        *(("false_alarms_per_s", c.c_double), ("withhold_s", c.c_double)),
    )


class _Sums(c.Structure):
    _fields_ = (
        ("weight", c.c_double),
        *(("origin", c.c_double * CHANNELS), ("mean", c.c_double * CHANNELS)),
        ("scatter", c.c_double * PAIRS),
    )


class _Retry(c.Structure):
    _fields_ = (("at", c.c_double), ("tried_at", c.c_double), ("tries", c.c_uint32))


_NUMBERS = ("seq", "acknowledged", "pending", "floor_ms", "learnt", "withheld", "lost", "lifetime")
_MORE = ("pending_rows", "delivered", "built")
_FLAGS = ("asked_again", "forced", "alarm_news", "paused")
_TIMES = ("built_at", "report_at", "silent_until", "contradicted_at")


class Leaf(c.Structure):
    """`submerge_leaf`, field by field."""

    _fields_ = (
        *(("config", _Config), ("scorer", c.c_void_p), ("sums", _Sums)),
        *(("faded_at", c.c_double), ("random", c.c_uint64)),
        *(("incarnation", c.c_uint64 * 2), ("pinned", c.c_uint64 * 2)),
        *(("joined", c.c_int), ("top", c.c_int)),
        *((name, c.c_uint64) for name in (*_NUMBERS, *_MORE)),
        *(("join", _Retry), ("wait", _Retry)),
        *((name, c.c_int) for name in _FLAGS),
        *(("boot", c.c_uint64), ("desired", c.c_uint64)),
        *((name, c.c_double) for name in _TIMES),
    )


class Scorer(c.Structure):
    """`submerge_leaf_scorer`, field by field."""

    _fields_ = (
        *(("version", c.c_uint64), ("ready", c.c_int), ("provisional", c.c_int)),
        *(("limit", c.c_double), ("calm", c.c_double), ("average", c.c_double)),
        *(("quiet", c.c_uint32), ("blocks", c.c_uint32)),
        *(("open", c.c_int), ("marked", c.c_int), ("verdict", c.c_int)),
        *((name, c.c_double) for name in ("since_s", "began_s", "peaked_s", "ended_s", "worst")),
        *((name, c.c_uint64) for name in ("number", "raised_by", "withheld")),
        ("top", c.c_uint8 * 3),
        *((name, c.c_double * 3) for name in ("share", "value", "expected")),
        *(("mean", c.c_double * CHANNELS), ("precision", c.c_double * CHANNELS)),
        ("factor", c.c_double * PAIRS),
    )


class Score(c.Structure):
    _fields_ = (
        *(("scored", c.c_int), ("alarm", c.c_int)),
        *(("distance", c.c_double), ("average", c.c_double)),
    )


class Sums(NamedTuple):
    weight: float
    mean: Array
    scatter: Array


def build(folder: Path, sources: Sequence[Path] = SOURCES) -> c.CDLL:
    """Compile the leaf into a folder; OSError or CalledProcessError if that fails."""
    path = folder / "libleaf.so"
    compiler = shutil.which("gcc") or "cc"
    command = [compiler, *FLAGS, "-shared", "-fPIC", f"-I{HERE}", "-o", str(path)]
    subprocess.run([*command, *map(str, sources), "-lm"], check=True, capture_output=True)
    library = c.CDLL(str(path))
    library.submerge_leaf_send.restype = c.c_size_t
    library.submerge_leaf_wakes_at.restype = c.c_double
    return library


class CLeaf:
    """One leaf, from its start to its end."""

    def __init__(
        self,
        library: c.CDLL,
        schema: Schema,
        node: str,
        *,
        group: str = "g",
        parent: str = "root",
        seed: int = 0,
        at: Now | None = None,
        scores: bool = True,
        **settings: float,
    ) -> None:
        width, scaling = schema.width, schema.scaling
        names = [*map(label, schema.names)]
        offset = [0.0] * width if scaling is None else scaling.offset
        scale = [1.0] * width if scaling is None else scaling.scale
        self._schema = _Schema(
            *(width, CENTERS.index(schema.center), schema.half_life or 0.0),
            *(schema.canonical, c.cast(c.create_string_buffer(b""), c.c_char_p)),
            (c.c_char_p * width)(*names),
            *((c.c_double * width)(*offset), (c.c_double * width)(*scale)),
        )
        self._fingerprint = c.create_string_buffer(bytes.fromhex(schema.fingerprint), 32)
        self._schema.fingerprint = c.cast(self._fingerprint, c.c_char_p)
        # The leaf points to these as long as it lives.
        self._config = config = _Config(
            node.encode(), group.encode(), parent.encode(), c.pointer(self._schema)
        )
        for name, value in settings.items():
            setattr(config, name, value)
        self._library, self.dim, self.group, self._text = library, width, group, schema.canonical
        self.state, self.scorer = Leaf(), Scorer()
        scorer = c.byref(self.scorer) if scores else None
        self.wrong = library.submerge_leaf_start(
            *(c.byref(self.state), c.byref(config), scorer, c.c_uint64(seed)),
            c.byref(at or Now(0.0, 0.0, 0)),
        )
        self._room = c.create_string_buffer(8 * PAIRS + 1280 + len(schema.canonical))

    def learn(self, rows: Array, at: Now) -> list[int]:
        """Learn rows (n, channels), in their units; return what became of each."""
        score, rows = Score(), np.ascontiguousarray(rows, dtype=np.float64)
        self.scores = []
        fates, first = [], rows.ctypes.data
        for i in range(len(rows)):
            row = c.c_void_p(first + 8 * self.dim * i)
            args = c.byref(self.state), row, c.byref(score), c.byref(at)
            fates.append(int(self._library.submerge_leaf_learn(*args)))
            self.scores.append((score.scored, score.alarm, score.distance, score.average))
        return fates

    def receive(self, kind: str, data: bytes, at: Now) -> int:
        """Take in a message; 0 if it was read."""
        number = len(UP) + DOWN.index(kind)
        args = c.byref(self.state), number, data, c.c_size_t(len(data)), c.byref(at)
        return int(self._library.submerge_leaf_receive(*args))

    def send(self, at: Now) -> tuple[Kind, bytes] | None:
        """Return the message that is due, with its kind."""
        kind = c.c_int()
        args = c.byref(self.state), self._room, c.c_size_t(len(self._room)), c.byref(kind)
        size = self._library.submerge_leaf_send(*args, c.byref(at))
        return (UP[kind.value], self._room.raw[:size]) if size else None

    @property
    def wakes_at(self) -> float:
        return float(self._library.submerge_leaf_wakes_at(c.byref(self.state)))

    def linked(self) -> None:
        self._library.submerge_leaf_linked(c.byref(self.state))

    def flush(self) -> None:
        self._library.submerge_leaf_flush(c.byref(self.state))

    @property
    def sums(self) -> Sums:
        """What it has learnt, scaled, as it holds it."""
        held, d = self.state.sums, self.dim
        full = np.zeros((d, d))
        full[np.triu_indices(d)] = held.scatter[: d * (d + 1) // 2]
        mean = np.array(held.mean[:d]) + np.array(held.origin[:d])
        return Sums(float(held.weight), mean, full + np.triu(full, 1).T)
