"""What people read of an answer: a table for `.csv`, and lines for the terminal, by kind."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from submerge import Array
from submerge.errors import PeerError
from submerge.features import Kernel, Matern, Polynomial
from submerge.jobs.envelopes import OPENING
from submerge.jobs.kinds.kpca.answer import kernel_of
from submerge.jobs.kinds.kpca.remainder import FEWEST
from submerge_files.console.tables import Column, table
from submerge_files.console.units import ago, figure, in_words, moment
from submerge_operate.fleet.jobs.results import JobResult

if TYPE_CHECKING:
    from rich.table import Table

    from submerge.jobs.job import Leaver
    from submerge_aggregator.jobs.record import JobRecord
    from submerge_aggregator.jobs.views import JobDetails, JobView, LeftView

MOST_NAMES = 5  # nodes that a line names


def table_of(views: Sequence[JobView], *, now: float) -> Table:
    columns: list[Column[JobView]] = [
        Column("job", lambda view: view.id),
        Column("group", lambda view: view.group, shown=len({view.group for view in views}) > 1),
        Column("kind", lambda view: view.kind),
        Column("opened", lambda view: moment(view.opened_s) if view.opened_s else "-"),
        Column("took", lambda view: took(view, now=now), right=True),
        Column("nodes", lambda view: f"{view.members:,}", right=True),
        Column("state", state_of, folds=True),
    ]
    return table(views, columns)


def state_of(view: JobView) -> str:
    if view.state == "failed":
        return f"failed: {view.failure}"
    if view.state == "running":
        return stage_of(view)
    lost = [f"{view.left:,} left"] if view.left else []
    lost += [f"{view.declined:,} took no part"] if view.declined else []
    return ", ".join([f"done in {view.round:,} rounds", *lost])


def stage_of(view: JobView) -> str:
    if view.phase == OPENING:
        return "asks who takes part"
    attempt = f", attempt {view.attempt}" if view.attempt > 1 else ""
    return f"round {view.round:,} ({view.phase}){attempt}, {_nodes(view.members)}"


def took(view: JobView, *, now: float) -> str:
    if not view.opened_s:
        return "-"
    return ago(max(0.0, (view.ended_s or now) - view.opened_s))


def job_lines(details: JobDetails, *, now: float) -> list[tuple[str, str]]:
    view = details.job
    settings = " ".join(f"{name}={value}" for name, value in view.settings.items())
    opened = f"opened {moment(view.opened_s)}, " if view.opened_s else ""
    lines = [
        ("job", f"{view.id}: {view.kind} of group {view.group}"),
        ("settings", settings or "none"),
        ("state", state_of(view)),
        ("time", f"{opened}{'took' if view.ended_s else 'runs for'} {took(view, now=now)}"),
    ]
    return lines + _node_lines(details.stayed, details.left, details.declined)


def record_lines(record: JobRecord) -> list[tuple[str, str]]:
    job = record.job
    settings = " ".join(f"{name}={value}" for name, value in job.settings.items())
    where = f"of group {job.group}: {job.id}" if record.opened_s else "of files, in this process"
    again = f", in attempt {record.attempts}" if record.attempts > 1 else ""
    took = f", {in_words(record.ended_s - record.opened_s)}" if record.opened_s else ""
    return [
        ("job", " ".join((job.kind, settings, where)).replace("  ", " ")),
        ("rounds", f"{record.rounds:,}{again}{took}"),
        *_node_lines(record.stayed, record.left, record.declined),
    ]


def _node_lines(
    stayed: Iterable[str], left: Mapping[str, LeftView | Leaver], declined: Mapping[str, str]
) -> list[tuple[str, str]]:
    counts = {
        name: each.why + (f", counts in {each.rounds} rounds" if each.rounds else "")
        for name, each in left.items()
    }
    nodes = {"nodes": dict.fromkeys(stayed, ""), "left": counts, "no part": declined}
    lines = [(name, _named(each)) for name, each in nodes.items() if each]
    if 0 < len(nodes["nodes"]) < len(left):
        lines.append(("note", "fewer nodes stayed than left: the answer is of those few alone"))
    return lines


def _named(nodes: Mapping[str, str]) -> str:
    names = [f"{name} ({why})" if why else name for name, why in nodes.items()]
    more = f" and {len(names) - MOST_NAMES:,} more" if len(names) > MOST_NAMES else ""
    return f"{len(names):,}: {', '.join(names[:MOST_NAMES])}{more}"


def _nodes(number: int) -> str:
    return f"{number:,} node{'s' * (number != 1)}"


Lines = list[tuple[str, str]]

MOST_SHARES = 8  # directions that a line shows
SHOWN_LIMIT = 0.99  # the share of rows whose limits a line shows

KERNEL_PCA = {"points", "kernel", "counts", "eigenvalues", "energy"}
LANDMARKS = {"points", "kernel", "counts"}
"""Arrays that lines are made of; an answer of another version may lack some."""


def kernel_pca_lines(result: JobResult) -> Lines:
    answer = result.answer
    rows, held_out, *nodes = answer["counts"].tolist()
    lines = [
        ("rows", f"{rows:,.0f}" + (f", and {held_out:,.0f} held out" if held_out else "")),
        *_chosen(result, "points", nodes),
        ("directions", _shares(answer["eigenvalues"], float(answer["energy"][-1]), "the features")),
    ]
    if {"readings_eigenvalues", "readings_energy"} <= answer.keys():
        energy = float(answer["readings_energy"][0])
        shares = _shares(answer["readings_eigenvalues"], energy, "the readings themselves")
        lines.append(("readings", shares))
    lines.append(("limits", _limits(result)))
    return lines + (_clusters(answer, "cluster_counts", "scores")[1:] if "cost" in answer else [])


def landmark_lines(result: JobResult) -> Lines:
    rows, *nodes = result.answer["counts"].tolist()
    return [("rows", f"{rows:,.0f}"), *_chosen(result, "landmarks", nodes)]


def _chosen(result: JobResult, name: str, nodes: list[float]) -> Lines:
    """Return the rows that were chosen, by how many nodes may share rows, and their kernel."""
    found, asked = len(result.answer["points"]), result.record.job.settings.get(name)
    said, (taking_part, sharing) = f"{found:,}", nodes
    if type(asked) is int and found < asked:
        said += f", of {asked:,} asked for"
    if sharing < taking_part:
        said += f"; {sharing:,.0f} of {taking_part:,.0f} nodes may share rows"
    try:
        kernel = _in_words(kernel_of(result.answer["kernel"]))
    except PeerError as error:
        kernel = str(error)
    return [("kernel", kernel), (name, said)]


def _in_words(kernel: Kernel) -> str:
    said = f"{type(kernel).__name__.lower()}, gamma {figure(kernel.gamma or 0.0)}"
    if isinstance(kernel, Polynomial):
        return f"{said}, degree {kernel.degree}, coef0 {figure(kernel.coef0)}"
    return f"{said}, nu {kernel.nu:g}" if isinstance(kernel, Matern) else said


def _shares(eigenvalues: Array, energy: float, of: str) -> str:
    if not energy > 0:
        return f"{len(eigenvalues)}"
    shares = eigenvalues / energy
    shown = ", ".join(f"{share:.1%}" for share in shares[:MOST_SHARES].tolist())
    more = f" and {len(shares) - MOST_SHARES} smaller" if len(shares) > MOST_SHARES else ""
    return f"{len(shares)}, of {shown}{more}: {shares.sum():.1%} of all variation of {of}"


def _limits(result: JobResult) -> str:
    """Return the limits of one share of the rows that were held out."""
    answer = result.answer
    if not {"limit_shares", "spe_limits", "t2_limits"} <= answer.keys():
        if answer["counts"][1]:
            return f"none: they need {FEWEST} rows held out or more"
        if result.record.job.settings.get("held_out"):
            return "none: rows are held out in groups of eight, and this share of a node is none"
        return "none: --held-out 20% measures them on rows that are not learnt"
    at = int(np.abs(answer["limit_shares"] - SHOWN_LIMIT).argmin())
    said = (
        f"{100 * answer['limit_shares'][at]:.4g}% of the rows held out have SPE at most"
        f" {figure(float(answer['spe_limits'][at]))}, T2 {figure(float(answer['t2_limits'][at]))}"
    )
    if "readings_limits" in answer:
        said += f", SPE of readings {figure(float(answer['readings_limits'][at]))}"
    return said


MOST_CHANNELS = 20  # channels that have a line
MOST_FIGURES = 8  # numbers of an array that a line shows


def score_centers_table(result: JobResult) -> list[list[object]]:
    """Return the clusters of kernel scores, one a row: a center is a place among scores."""
    width = result.answer["centers"].shape[1]
    return _clusters_table(result.answer, [f"score_{at}" for at in range(1, width + 1)])


def _clusters_table(arrays: Mapping[str, Array], headings: Sequence[str]) -> list[list[object]]:
    rows: list[list[object]] = [["cluster", "rows", *headings]]
    clusters = zip(arrays["centers"], arrays["counts"], strict=True)
    for number, (center, count) in enumerate(clusters, 1):
        rows.append([number, int(count), *map(float, center)])
    return rows


def moments_table(result: JobResult) -> list[list[object]]:
    """Return mean and standard deviation of each channel, one a row, in its unit."""
    deviations = np.sqrt(result.arrays["variance"])
    rows: list[list[object]] = [["channel", "unit", "mean", "deviation"]]
    for channel, mean, deviation in zip(
        result.schema.named, result.arrays["mean"], deviations, strict=True
    ):
        rows.append([channel.name, channel.unit, float(mean), float(deviation)])
    return rows


TABLES: dict[str, Callable[[JobResult], list[list[object]]]] = {
    "cluster": score_centers_table,
    "kmeans": lambda result: _clusters_table(result.arrays, result.headings),
    "moments": moments_table,
}
"""Kinds whose answer is a table."""


def answer_lines(result: JobResult) -> list[tuple[str, str]]:
    if result.kind == "kmeans" and result.is_whole:
        return _clusters(result.answer, "counts", "scaled rows")
    if result.kind == "cluster" and result.is_whole:
        return [*_clusters(result.answer, "counts", "scores"), *_gammas(result)]
    if result.kind == "moments" and result.is_whole:
        count, out = (int(result.answer[name][0]) for name in ("count", "held_out"))
        return [("rows", _rows(count, out)), *_channels(result)]
    if result.kind in ("kpca", "nystrom") and result.answer.keys() >= KERNEL_PCA:
        return kernel_pca_lines(result)
    if result.kind == "landmarks" and result.answer.keys() >= LANDMARKS:
        return landmark_lines(result)
    return [(name, _figures(array)) for name, array in result.answer.items()]


def _gammas(result: JobResult) -> list[tuple[str, str]]:
    """Return the gamma that was taken, and those that were tried beside it, by their eigengaps."""
    gammas, gaps = (result.answer[name].tolist() for name in ("gammas", "gaps"))
    best = int(result.answer["gaps"].argmax())
    others = [
        f"{figure(gap)} at {figure(gamma)}"
        for at, (gamma, gap) in enumerate(zip(gammas, gaps, strict=True))
        if at != best
    ]
    said = f"{figure(gammas[best])}, eigengap {figure(gaps[best])}"
    return [("gamma", f"{said}: the widest, before {', '.join(others)}" if others else said)]


def _clusters(answer: Mapping[str, Array], counted: str, of: str) -> list[tuple[str, str]]:
    counts, (out, out_cost) = answer[counted], answer["held_out"]
    rows, cost = float(counts.sum()), float(answer["cost"][0])
    said = f"{figure(cost / rows)} a row" if rows else "none"
    if out:
        said += f"; {figure(out_cost / out)} a row held out"
    sizes = sorted((int(count) for count in counts), reverse=True)
    shown = ", ".join(f"{size:,}" for size in sizes[:MOST_FIGURES])
    more = f" and {len(sizes) - MOST_FIGURES} smaller" if len(sizes) > MOST_FIGURES else ""
    return [
        ("rows", _rows(int(rows), int(out))),
        ("clusters", f"{len(sizes)}, of {shown}{more} rows"),
        ("cost", f"{said}, of squared distance between {of} and centers"),
    ]


def _channels(result: JobResult) -> list[tuple[str, str]]:
    deviations = np.sqrt(result.arrays["variance"])
    said = [
        f"{name}: {figure(float(mean))}, deviation {figure(float(deviation))}"
        for name, mean, deviation in zip(
            result.headings, result.arrays["mean"], deviations, strict=True
        )
    ]
    more = [f"{len(said) - MOST_CHANNELS:,} more: --out moments.csv has all"]
    shown = said if len(said) <= MOST_CHANNELS else said[:MOST_CHANNELS] + more
    return [("" if at else "channels", line) for at, line in enumerate(shown)]


def _rows(count: int, held_out: int) -> str:
    return f"{count:,}" + (f", and {held_out:,} held out" if held_out else "")


def _figures(array: np.ndarray) -> str:
    if array.size > MOST_FIGURES:
        return " x ".join(map(str, array.shape)) + " numbers"
    return ", ".join(figure(float(value)) for value in array.ravel())
