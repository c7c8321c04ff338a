"""Values of a history as bytes, and back: settings, layouts, summaries of cells, folds."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from submerge.condition import Condition
from submerge.history.cell_learner import CellSummary
from submerge.history.first_pass import LearntCells
from submerge.history.folds import HeldOut
from submerge.history.layout import Cell, CellGrid, LaidOut, Layout, Periods
from submerge.history.recording import TimeSpan
from submerge.history.settings import FitSettings
from submerge.pca.expectation import Estimate, GappedRows, RareRows
from submerge.pca.whole_scatter import WholeScatter
from submerge.protocol.settings import AlarmSettings
from submerge.schema import Schema
from submerge_bridges.on_dask.packing import packed, unpacked
from submerge_proto.v1 import summary_pb2
from submerge_proto.wire import triangles


def settings_text(settings: FitSettings) -> dict[str, Any]:
    """Return settings as JSON holds them."""
    return {
        "rank": settings.rank,
        "rank_max": settings.rank_max,
        "oversample": settings.oversample,
        "when": None if settings.when is None else str(settings.when),
        "leaves_out": settings.leaves_out,
        "exclude": settings.exclude,
        "faults": settings.faults,
        "alarms": asdict(settings.alarms),
        "schema": None if settings.schema is None else settings.schema.canonical.decode(),
        "judged_rows": settings.judged_rows,
    }


def settings_of(text: dict[str, Any], names: tuple[str, ...]) -> FitSettings:
    """Return the settings that JSON holds; `names` are those of the channels."""
    when, schema = text["when"], text["schema"]
    return FitSettings(
        text["rank"],
        text["rank_max"],
        text["oversample"],
        None if when is None else Condition.parse(when, names),
        text["leaves_out"],
        tuple(TimeSpan(*each) for each in text["exclude"]),
        tuple(TimeSpan(*each) for each in text["faults"]),
        AlarmSettings(**text["alarms"]),
        None if schema is None else Schema.parse(schema.encode()),
        text["judged_rows"],
    )


def layout_bytes(layout: Layout) -> bytes:
    """Return what a part of a history's times have shown."""
    periods = layout.periods
    return packed(
        {
            "level": layout.level,
            "seen": layout.seen,
            "cells": [[*key, sorted(numbers)] for key, numbers in layout.cells.items()],
            "machines": [*layout.machines],
            "files": [*layout.files],
            "apart": [*periods.counts.items()],
            "rounded": periods.rounded,
            "first": periods.first,
            "last": periods.last,
        }
    )


def layout_of(data: bytes, width: int, settings: FitSettings) -> Layout:
    """Return the layout in some bytes."""
    head, _ = unpacked(data)
    counts = Counter({float(value): int(n) for value, n in head["apart"]})
    return Layout(
        width,
        settings,
        head["level"],
        TimeSpan(*head["seen"]),
        {(machine, file): set(numbers) for machine, file, numbers in head["cells"]},
        Periods(counts, head["rounded"], head["first"], head["last"]),
        {name: place for place, name in enumerate(head["machines"])},
        {name: place for place, name in enumerate(head["files"])},
    )


def laid_text(laid: LaidOut) -> dict[str, Any]:
    """Return what a layout has settled, as JSON holds it."""
    return laid._asdict()


def laid_of(text: dict[str, Any]) -> LaidOut:
    """Return what JSON holds of a settled layout."""
    grid, seen = CellGrid(*text["grid"]), TimeSpan(*text["seen"])
    return LaidOut(grid, text["period_s"], seen, tuple(text["machines"]), tuple(text["files"]))


def cells_bytes(part: LearntCells) -> bytes:
    """Return what a part of a history has learnt."""
    cells, pieces = [], list[bytes]()
    for cell, each in part.visits:
        sums, rare = each.group.sums, each.group.rare
        keys = [key.hex() for key in sums]
        cells.append([*cell, each.first, each.last, each.thinned, keys, len(rare)])
        pieces += [_scatter_bytes(each) for each in sums.values()]
        pieces += [np.ascontiguousarray(array).tobytes() for array in rare]
    head = {
        "cells": cells,
        "rows": part.rows,
        "gaps": part.gaps,
        "left_out": part.left_out,
        "spans": part.spans,
    }
    return packed(head, pieces)


def cells_of(data: bytes, fingerprint: str, width: int) -> LearntCells:
    """Return what a part has learnt; the fingerprint is that of the channels without scale."""
    head, pieces = unpacked(data)
    visits, rest = list[tuple[Cell, CellSummary]](), iter(pieces)
    for machine, run, number, first, last, thinned, keys, n in head["cells"]:
        sums = {bytes.fromhex(key): _scatter_of(next(rest), fingerprint) for key in keys}
        rare = RareRows(
            np.frombuffer(next(rest)).reshape(n, width),
            np.frombuffer(next(rest), bool).reshape(n, width),
            np.frombuffer(next(rest)),
        )
        group = GappedRows(sums, rare, fingerprint)
        visits.append((Cell(machine, run, number), CellSummary(group, first, last, thinned)))
    counts = Counter(head["left_out"])
    return LearntCells(tuple(visits), head["rows"], head["gaps"], counts, tuple(head["spans"]))


def known_text(known: Mapping[int, Estimate]) -> list[list[Any]]:
    """Return what fills rare gaps, as JSON holds it."""
    return [[machine, *(part.tolist() for part in each)] for machine, each in known.items()]


def known_from(text: list[list[Any]]) -> dict[int, Estimate]:
    """Return what JSON holds of what fills rare gaps."""
    return {machine: Estimate(*map(np.array, parts)) for machine, *parts in text}


def judge_bytes(judge: HeldOut) -> bytes:
    """Return what judges the rows of a history."""
    head = {
        "schema": judge.schema.canonical.decode(),
        "rank": judge.rank,
        "folds": [[*cell, fold] for cell, fold in judge.fold_of.items()],
        "laid": laid_text(judge.laid),
        "block_s": judge.block_s,
    }
    return packed(head, [_scatter_bytes(each) for each in judge.others])


def judge_of(data: bytes) -> HeldOut:
    """Return what judges the rows of a history."""
    head, pieces = unpacked(data)
    schema = Schema.parse(head["schema"].encode())
    return HeldOut(
        schema,
        head["rank"],
        {Cell(*cell): fold for *cell, fold in head["folds"]},
        tuple(_scatter_of(each, schema.fingerprint) for each in pieces),
        laid_of(head["laid"]),
        head["block_s"],
    )


def _scatter_bytes(scatter: WholeScatter) -> bytes:
    message = triangles.packed(scatter, exact=True)
    return bytes(message.SerializeToString(deterministic=True))


def _scatter_of(data: bytes, fingerprint: str) -> WholeScatter:
    return triangles.unpacked(summary_pb2.Subspace.FromString(data), fingerprint, kept=True)
