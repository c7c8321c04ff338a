"""Kernel clustering: of rings, in one place and over a fleet; and memory of one pass.

The data are two rings (2000 points each, radii 0.2 and 1.0, radial standard deviation .08).
Accuracy is that of the best pairing of clusters and classes. The first table is spectral
clustering, in one place and with the rows on five nodes that do not send them; the second is the
job `cluster`. How good one pass is, beside the whole kernel and Nystrom, is in the figures of
papers, `one_pass.py`.
"""

import sys
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np

import measure
from page import page
from report import Table
from submerge import Schema, Subspace, merge
from submerge.features import Gaussian, Polynomial, RandomFourier
from submerge.jobs.arrays import pack
from submerge.jobs.job import Job, Settings
from submerge.jobs.kind import PhaseDown
from submerge.jobs.kinds import KINDS
from submerge.jobs.kinds.cluster import ClusterJob
from submerge.jobs.local_run import Parts, run_here, split_here
from submerge.jobs.membership import ClusterMembership
from submerge.jobs.points import JobPoints
from submerge.kernel.kmeans_rounds import (
    initial_centers,
    lloyd,
    local_summary,
    nearest,
    spread,
    sum_of,
    tally,
)
from submerge.kernel.spectral import SPARE, eigengap, maps_around, scores, summary_of
from submerge.sklearn import KernelSpectralClustering, OnePassKernelKMeans

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import clusters


def spectral(quick: bool) -> Table:
    """Find the rings from kernel scores, in one place and on five nodes."""
    seeds, found = range(2 if quick else 10), []
    for seed in measure.progress(seeds, "clustering: spectral"):
        X, truth = clusters.rings(seed=seed)
        order = np.random.default_rng(seed).permutation(len(X))
        here = KernelSpectralClustering(2, random_state=seed).fit(X)
        there, gaps, numbers = _on_nodes(np.split(X[order], [100, 500, 1400, 2500]), 2, seed)
        accuracies = (
            clusters.accuracy(truth, here.labels_),
            clusters.accuracy(truth[order], there),
        )
        found.append((*accuracies, *gaps, numbers))
    figures = np.array(found)
    return Table(
        f"Rings by spectral clustering, D = 512, {len(seeds)} seeds",
        {
            "accuracy, least, one place": ".4f",
            "five nodes": ".4f",
            "asked": ".2f",
            "eigengap at gamma / 4": ".3f",
            "gamma": ".3f",
            "4 gamma": ".3f",
            "kB a node sends": ".0f",
        },
        [
            (
                *figures[:, :2].min(axis=0),
                0.98,
                *figures[:, 2:5].mean(axis=0),
                figures[:, 5].max() / 1e3,
            )
        ],
        "gamma, the width of the kernel, is 1 / (2 tr C) of all rows. Five nodes hold 100 to 1500"
        " rows each and send subspaces, counts and sums; kB counts their float64 numbers. The"
        " eigengap is by how much the last direction that counts stands above the next; gamma is"
        " the one with the widest.",
    )


def as_jobs(quick: bool) -> Table:
    """Find the rings by the job `cluster`: over servers of very different sizes, in a tree."""
    seeds, rows = range(2 if quick else 5), []
    for servers in measure.progress((1, 5, 20), "clustering: jobs"):
        found = [_as_job(servers, seed) for seed in seeds]
        accuracies, held_out, sent, rounds = zip(*found, strict=True)
        rows.append((servers, min(accuracies), min(held_out), 0.98, max(sent) / 1e3, max(rounds)))
    return Table(
        f"Rings by the job cluster, D = 512, least of {len(seeds)} seeds",
        {
            "servers": "d",
            "accuracy": ".4f",
            "of rows held out": ".4f",
            "asked": ".2f",
            "kB a server sends": ".0f",
            "rounds, most": "d",
        },
        rows,
        "A fifth of the rows is held out. The i-th server holds a share in proportion to 1 / i;"
        " with more than five they are below five aggregators. kB are those of a server's payloads"
        " over all rounds, of which the three summaries are nearly all.",
    )


def _as_job(servers: int, seed: int) -> tuple[float, float, int, int]:
    """Return the accuracy of a job, that of rows held out, bytes a server sends, and rounds."""
    X, truth = clusters.rings(seed=seed)
    order = np.random.default_rng(seed).permutation(len(X))
    shares = 1.0 / np.arange(1, servers + 1)
    cuts = (np.cumsum(shares / shares.sum()) * len(X)).astype(int)[:-1]
    parts = {f"s{i:02}": X[part] for i, part in enumerate(np.split(order, cuts))}
    classes = {f"s{i:02}": truth[part] for i, part in enumerate(np.split(order, cuts))}
    names = sorted(parts)
    tree: Parts = parts
    if servers > 5:
        tree = {f"h{i}": {name: parts[name] for name in names[i::5]} for i in range(5)}
    settings: Settings = {"clusters": 2, "held_out": 0.2, "seed": seed}
    sent, rounds = dict[str, int](), 0

    class Weighed(ClusterJob):
        """Counts the bytes of what servers send."""

        def contribute(self, memory: Any, down: PhaseDown, points: JobPoints, node: str) -> Any:
            memory, up = super().contribute(memory, down, points, node)
            sent[node] = sent.get(node, 0) + len(pack({}, up))
            return memory, up

    def began(_: str, number: int) -> None:
        nonlocal rounds
        rounds = number

    with mock.patch.dict(KINDS, {"cluster": Weighed}):
        answer = run_here("cluster", settings, tree, began=began)
    kept = ClusterMembership.of(
        Job("job", "cluster", settings, "rings", "0" * 64, X.shape[1]), answer
    )
    split_out = {name: split_here(name, parts[name], settings).held_out for name in names}
    labels = np.concatenate([kept.assign(parts[name]).numbers for name in names])
    known = np.concatenate([classes[name] for name in names])
    out = np.vstack([split_out[name] for name in names])
    by_row = {row.tobytes(): label for row, label in zip(X, truth, strict=True)}
    out_truth = np.array([by_row[row.tobytes()] for row in out])
    return (
        clusters.accuracy(known, labels),
        clusters.accuracy(out_truth, kept.assign(out).numbers),
        max(sent.values()),
        rounds,
    )


def memory(quick: bool) -> Table:
    """Weigh what fit holds, against the kernel matrix that it does not form."""
    rows = []
    for each in (500, 1000) if quick else (500, 1000, 2000, 4000):
        X, _ = clusters.rings(each, seed=0)
        estimator = OnePassKernelKMeans(2, kernel=Polynomial(2, 1.0), n_init=1)
        seconds = measure.clocked(estimator.fit, lambda X=X: (X,))
        peak = measure.peak_bytes(partial(estimator.fit, X))
        rows.append((len(X), len(X) ** 2 * 8 / 2**20, peak / 2**20, seconds))
    return Table(
        "Memory of OnePassKernelKMeans, 256 columns at once",
        {"n": "d", "K would be, MiB": ".0f", "most held, MiB": ".1f", "fit, s": ".2f"},
        rows,
        "Memory in use is linear in n.",
    )


def _on_nodes(
    nodes: list[measure.Array], k: int, seed: int
) -> tuple[measure.Array, list[float], int]:
    """Return labels, the eigengaps, and how many numbers the busiest node sends."""
    rng, channels = np.random.default_rng(seed), nodes[0].shape[1]
    linear = merge(*(Subspace.of(node, Schema(channels), rank=1) for node in nodes), rank=1)
    tried = maps_around(RandomFourier(Gaussian(), 512, seed=seed), spread(linear))
    schemas = [Schema(channels, features=each) for each in tried]
    sent = [[summary_of(node, schema, n_clusters=k) for node in nodes] for schema in schemas]
    models = [merge(*each, rank=k + SPARE) for each in sent]
    gaps = [eigengap(each, n_clusters=k) for each in models]
    best = int(np.argmax(gaps))
    embedded = [scores(node, schemas[best], models[best], n_clusters=k) for node in nodes]
    rounds = 0

    def ask(centers: measure.Array) -> object:
        nonlocal rounds
        rounds += 1
        return sum_of(tally(each, centers) for each in embedded)

    start = initial_centers([local_summary(each, k, rng) for each in embedded], k, rng)
    centers = lloyd(ask, start)
    numbers = max(
        sum(model.basis.size + model.rank + model.dim for model in of_node)
        for of_node in zip(*sent, strict=True)
    )
    numbers += (rounds + 1) * (k + centers.size + 1)
    return np.concatenate([nearest(each, centers)[0] for each in embedded]), gaps, 8 * numbers


def room(quick: bool) -> list[Table]:
    """Measure all three."""
    return [spectral(quick), as_jobs(quick), memory(quick)]


if __name__ == "__main__":
    page(room)
