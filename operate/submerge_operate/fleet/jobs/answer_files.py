"""An answer as files: `.npz` has all arrays, `.csv` a table, other names a model; and a picture."""

from __future__ import annotations

import io
import time
import zipfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import numpy as np

from submerge.errors import UsageError
from submerge.history.knowledge import NEVER, Learnt
from submerge.jobs.kinds.kpca.answer import KernelModel
from submerge.protocol.messages import Counts, Model
from submerge.protocol.summaries import Summary
from submerge.schema import Schema
from submerge.stats.score_limits import Limits
from submerge_client.files import atomic_write, writing_to
from submerge_files import model_file
from submerge_files.console.units import csv_text
from submerge_operate.fleet.jobs.results import JOB, JobResult
from submerge_operate.fleet.jobs.tables import TABLES

# Limits are of rows that were held out; a job without any has none, and `score` says so.

AsModel = Callable[[JobResult], Learnt]


def learnt_from(
    result: JobResult,
    schema: Schema,
    summary: Summary,
    *,
    rank: int,
    rows: int,
    limits: Limits | None = None,
) -> Learnt:
    """Return what a model file holds of an answer: what scores, and nothing that merges."""
    # `schema` is that of the rows, with the features of the answer; where it has features,
    # `summary` is a `KernelSummary`: directions of the features, and of the scaled readings.
    record = result.record
    model = Model(
        group=record.job.group,
        version=1,
        schema=schema.canonical,
        fingerprint=schema.fingerprint,
        summary=summary,
        limits=limits,
        counts=Counts(rows),
        nodes=len(record.stayed),
        staleness=(0.0, 0.0, 0.0),
        created=record.ended_s or time.time(),
        expires=NEVER,
        rank=rank,
    )
    return Learnt(model, origin=f"{record.job.group} {record.job.id}" if record.opened_s else "")


def kernel_model(result: JobResult) -> Learnt:
    """Return the model of an answer of kernel PCA: scores of features, and of readings."""
    made = KernelModel.of(result.answer, result.schema)
    return learnt_from(
        *(result, made.schema, made.summary), rank=made.rank, rows=made.rows, limits=made.limits
    )


MODELS: dict[str, AsModel] = {"kpca": kernel_model, "nystrom": kernel_model}


def check_apart(targets: Sequence[Path], inputs: Iterable[Path]) -> None:
    read = {each.resolve() for each in inputs}
    seen: set[Path] = set()
    for path in targets:
        place = path.resolve()
        if place in read:
            raise UsageError(f"{path} is read from, and would be overwritten: name another file")
        if place in seen:
            raise UsageError(f"{path} is to be written twice: name another file")
        seen.add(place)


def check_outputs(kind: str, paths: tuple[Path, ...]) -> None:
    """Refuse places where the answer of a kind cannot go, before the work."""
    for path in paths:
        if not path.parent.is_dir():
            raise UsageError(f"expected a folder {path.parent} for {path.name}, got none: make it")
        suffix = path.suffix.lower()
        if suffix == ".csv" and kind not in TABLES:
            raise UsageError(f"a {kind} job has no table, got {path}: name a file .npz")
        if suffix not in (".npz", ".csv") and kind not in MODELS:
            forms = ".npz or .csv" if kind in TABLES else ".npz"
            raise UsageError(f"a {kind} job gives no model, got {path}: name a file {forms}")
        if path.exists():
            _check_older(path, suffix)


def save(result: JobResult, path: Path) -> int:
    """Write an answer, whole or not at all; return the bytes of the file."""
    suffix = path.suffix.lower()
    if suffix not in (".npz", ".csv"):
        return model_file.save(path, _model(result))
    data = _archive(result) if suffix == ".npz" else _table(result)
    with writing_to(f"the answer to {path}"):
        atomic_write(path, data)
    return len(data)


def check_whole(result: JobResult) -> None:
    """Refuse an answer that lacks arrays, for what is made of all of them."""
    if not result.is_whole:
        raise UsageError(_other_version(result))


def _check_older(path: Path, suffix: str) -> None:
    if suffix not in (".npz", ".csv"):
        model_file.check_older(path)
        return
    if path.stat().st_size and not (_is_archive(path) if suffix == ".npz" else _is_table(path)):
        raise UsageError(f"{path} exists and is no answer of a job: name another file")


def _is_table(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(64).startswith(HEADS)


def _is_archive(path: Path) -> bool:
    """Return whether a file has the arrays of an answer: arrays of others have no such name."""
    try:
        with zipfile.ZipFile(path) as archive:
            return f"{JOB}.npy" in archive.namelist()
    except (OSError, zipfile.BadZipFile):
        return False


HEADS = (b"cluster,rows,", b"channel,unit,mean,deviation\n")  # how tables begin


def _archive(result: JobResult) -> bytes:
    file = io.BytesIO()
    np.savez_compressed(file, **result.archived())
    return file.getvalue()


def _table(result: JobResult) -> bytes:
    check_whole(result)
    return csv_text(TABLES[result.kind](result)).encode()


def _model(result: JobResult) -> Learnt:
    try:
        return MODELS[result.kind](result)
    except KeyError as error:  # some arrays of a kind are there or not, by its settings
        raise UsageError(_other_version(result)) from error


def _other_version(result: JobResult) -> str:
    return (
        f"the answer of this {result.kind} job has only arrays {', '.join(sorted(result.answer))}:"
        " the root has another version; name a file .npz, which takes them all"
    )


MOST_LABELS = 60  # more channels than this are numbered, not named


def draw(result: JobResult, path: Path) -> None:
    """Write the picture of k-means, a PNG: a row for each cluster's center, the largest first."""
    from submerge_files.console.figures import Figure
    from submerge_files.console.figures import save as save_picture

    check_whole(result)
    centers, counts = np.asarray(result.answer["centers"]), result.answer["counts"]
    order = np.argsort(-counts, kind="stable")
    deviations, spread = centers, centers.std(axis=0)
    if not result.schema.scaling:
        # Standardized, so that channels can be compared.
        deviations = (centers - centers.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    most = max(float(np.abs(deviations).max()), 1e-12)
    width = min(4 + 0.28 * result.schema.width, 30)
    figure = Figure(figsize=(width, 1.6 + 0.3 * len(order)), layout="constrained")
    chart = figure.subplots()
    image = chart.imshow(deviations[order], cmap="RdBu_r", vmin=-most, vmax=most, aspect="auto")
    chart.set_yticks(range(len(order)))
    rows = [f"cluster {number + 1}: {int(counts[number]):,} rows" for number in order]
    chart.set_yticklabels(rows, fontsize="small")
    if result.schema.width <= MOST_LABELS:
        chart.set_xticks(range(result.schema.width))
        chart.set_xticklabels(result.schema.names, rotation=90, fontsize="small")
    else:
        chart.set_xlabel("channels")
    bar = figure.colorbar(image, ax=chart)
    scaled = result.schema.scaling is not None
    bar.set_label("scaled value" if scaled else "value, each channel's centers standardized")
    save_picture(figure, path, dpi=130)
