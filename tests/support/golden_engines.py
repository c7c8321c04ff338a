"""Golden engines: files that `submerge.dumps` of commit f0bc8489 wrote, and what they say.

Every name in them is written out here, so that none follows a class when that is renamed.
"""

from __future__ import annotations

import io
import json
from typing import Any

import numpy as np

from support.field_numbers import plain
from support.golden_parts import LINEAR

SCHEMA = LINEAR.canonical.decode()

ABOUT: dict[str, dict[str, Any]] = {
    "engine_sapca.npz": {
        "form": 2,
        "rule": {
            "kind": "sapca",
            "start": 3,
            "alpha": 0.015625,
            "beta": 0.25,
            "lowest": 2,
            "highest": 4,
            "hold": 5,
        },
        "oversample": 1,
        "forgetting_factor": 0.9375,
        "center": True,
        "block_size": 9,
        "exact": "never",
        "memory": 3_000_000,
        "dtype": "float32",
        "n_samples_seen": 1234,
        "fallbacks": 6,
        "target": 2,
        "held": 7,
        "schema": SCHEMA,
    },
    "engine_energy.npz": {
        "form": 2,
        "rule": {
            "kind": "energy",
            "low": 0.5,
            "high": 0.75,
            "start": 3,
            "lowest": 2,
            "highest": 4,
            "hold": 8,
        },
        "oversample": 2,
        "forgetting_factor": 0.875,
        "center": True,
        "block_size": 11,
        "exact": "auto",
        "memory": 3_000_000,
        "dtype": "float64",
        "n_samples_seen": 2345,
        "fallbacks": 9,
        "target": 4,
        "held": 10,
        "schema": SCHEMA,
    },
    "engine_fixed.npz": {
        "form": 2,
        "rule": {"kind": "fixed", "start": 12},
        "oversample": 3,
        "forgetting_factor": 0.75,
        "center": False,
        "block_size": 13,
        "exact": "never",
        "memory": 3_000_000,
        "dtype": "float32",
        "n_samples_seen": 0,
        "fallbacks": 0,
        "target": 12,
        "held": 0,
        "schema": None,
    },
    "engine_form_2.npz": {
        "form": 2,
        "rule": {"kind": "fixed", "start": 3},
        "oversample": 2,
        "forgetting_factor": 0.96875,
        "center": True,
        "block_size": None,
        "exact": "auto",
        "memory": 123456,
        "dtype": "float32",
        "n_samples_seen": 3456,
        "fallbacks": 0,
        "target": 3,
        "held": 0,
        "schema": SCHEMA,
    },
}
"""By the file's name: the two memories, an engine that has seen nothing, and one without a block
size of its own."""

ENGINES = tuple(ABOUT)


def entries(data: bytes) -> dict[str, np.ndarray]:
    """Return the arrays in an engine's file."""
    with np.load(io.BytesIO(data), allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def text_of(data: bytes) -> dict[str, Any]:
    """Return what an engine's file says."""
    arrays = entries(data)
    about = json.loads(arrays.pop("about").tobytes())
    shown = {
        name: {"dtype": array.dtype.str, "values": [plain(x) for x in array.ravel().tolist()]}
        | {"shape": list(array.shape)}
        for name, array in arrays.items()
    }
    return {"about": about, **shown}
