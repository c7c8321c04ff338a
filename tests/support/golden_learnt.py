"""Golden model files of form 3: what was learnt from files, by a fleet, and below a root.

As in `golden_parts`, no two fields of one record hold the same value where that can be.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from submerge.client.alarms.blocks import KeptBlocks
from submerge.client.alarms.detector import DetectorState
from submerge.client.alarms.highest import HighestSoFar
from submerge.client.monitor_state import MonitorState
from submerge.history.knowledge import Learnt
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.history import Chunk
from submerge_proto.files.learnt import packed
from support import golden_client, golden_factors
from support import golden_parts as parts

MACHINES = "press 7", "pump-3"
"""One has a name that no node can have."""


def from_files() -> Learnt:
    """Two machines of a narrow group: a whole scatter, with digits that float32 has not."""
    model = parts.model("pumps", summary=parts.with_energies(), first=9)
    return Learnt(
        model=replace(golden_factors.model(model), rank=2),
        summary=parts.whole(dtype="<f8"),
        moments=parts.moments(4, 900, sample=False),
        sketches=parts.scores(33, of_readings=False),
        chunks=(
            chunk(1, "pump-3", "läuft.csv", 1_690_000_000.5),
            chunk(2, "press 7", "b/2026.csv.gz", np.nan),
            chunk(3, "pump-3", "", 1_690_000_100.5),
            chunk(4, "pump-3", "läuft.csv", 1_690_000_200.5),
        ),
        monitors=tuple((machine, monitor(machine)) for machine in MACHINES),
        period_s=0.25,
    )


def of_a_fleet() -> Learnt:
    """A kernel group, as a root merged it; its model does not say its rank."""
    return Learnt(
        model=parts.model("presses", summary=parts.kernel(), first=9),
        summary=parts.kernel(24.0, weight=85_500.75, dtype="<f8"),
        moments=parts.moments(8, 901, sample=True),
        sketches=parts.scores(34, of_readings=True),
        origin=f"presses {parts.ROOT}",
        lags=2,
    )


def below_a_root() -> Learnt:
    """The model alone."""
    return Learnt(model=parts.model("pumps", summary=parts.linear(), first=10), origin="pumps")


RANKS: dict[str, dict[str, int]] = {
    "form_3.model": {},
    "form_3_fleet.model": {"rank": 2, "linear_rank": 1},
    "form_3_alone.model": {"rank": 2},
}
"""What stands beside a model that does not say its rank, by the file's name."""

LEARNT = {
    "form_3.model": from_files,
    "form_3_fleet.model": of_a_fleet,
    "form_3_alone.model": below_a_root,
}


def written(name: str) -> bytes:
    """Return a golden file."""
    return packed(LEARNT[name](), **RANKS[name])


def chunk(number: int, machine: str, file: str, first: float) -> Chunk:
    """Return a chunk; its numbers follow from one."""
    key = bytes([number]) * 32
    return Chunk(key, machine, 4096 - number, first, first + 60 * number, file)


def monitor(machine: str, **fields: Any) -> MonitorState:
    """Return how the channels of a machine behave: what a node keeps, without its alarms."""
    node = golden_client.of_a_linear_group()["lookout",]
    kinds = ("channel", "linear", "spe", "t2")
    hours: KeptBlocks = replace(
        node.detector.hours,
        windows={kind: node.detector.hours.windows[kind] for kind in kinds},
        spared={kind: node.detector.hours.spared[kind] for kind in kinds},
    )
    highest = HighestSoFar({"spe": 70, "t2": 71}, {"spe": 5.5, "t2": 6.5}, {"spe": 0.5, "t2": 1.5})
    own = replace(node.own, count=3000 + len(machine))
    state = MonitorState(
        fingerprint=node.fingerprint,
        own=own,
        detector=DetectorState(excused=(1, 3), hours=hours, highest=highest),
        desired=DesiredState(machine, 0),
        run_lengths=node.run_lengths,
        habits=node.habits,
        residual_scale=node.residual_scale,
        offset=parts.numbers(0.75),
    )
    return replace(state, **fields)
