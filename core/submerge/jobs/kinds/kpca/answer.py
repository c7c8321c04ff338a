"""The answer of kernel PCA by a fleet: points, directions, eigenvalues, limits."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np

from submerge._linalg import Array
from submerge.errors import PeerError, UsageError
from submerge.features import Kernel, Landmarks, Matern, Polynomial
from submerge.features.kernels import NAMES, kernel_called
from submerge.jobs.arrays import Arrays
from submerge.jobs.kind import AnswerArray
from submerge.jobs.kinds.kmeans import OF_DISTANCES
from submerge.jobs.kinds.kpca.dis_lr import LeadingAxes
from submerge.pca.subspace import Subspace, oriented
from submerge.protocol.summaries import KernelSummary
from submerge.schema import Schema
from submerge.stats.score_limits import Limits

ANSWERS = (
    AnswerArray("points", "The rows that were chosen, (m, width).", "rows"),
    AnswerArray("axes", "Directions in the points' coordinates, one a column, (m, k)."),
    AnswerArray("mean", "Of the features, in these coordinates; 0 unless centered, (m,)."),
    AnswerArray("eigenvalues", "Of the features' scatter, (k,)."),
    AnswerArray("energy", "The features' scatter in the points' span, and all of it, (2,)."),
    AnswerArray(
        "kernel", "0 gaussian, 1 laplace, 2 matern, 3 polynomial; gamma; its others, (4,)."
    ),
    AnswerArray("counts", "Rows, rows held out, participants, those that may share points, (4,)."),
    AnswerArray("readings_axes", "Directions of the readings themselves, (width, r)."),
    AnswerArray("readings_mean", "The mean reading, (width,).", "rows"),
    AnswerArray("readings_eigenvalues", "Of the readings' scatter, (r,)."),
    AnswerArray("readings_energy", "The readings' whole scatter, (1,)."),
    AnswerArray("limit_shares", "Shares of rows held out that lie below the limits."),
    AnswerArray("spe_limits", "Squared prediction error of features, below which they do."),
    AnswerArray("inside_limits", "The part of it in the points' span, which a model scores."),
    AnswerArray("t2_limits", "Hotelling's T2."),
    AnswerArray("readings_limits", "Squared prediction error of the readings themselves."),
    AnswerArray("centers", "With clusters: each one's mean score, (clusters, components)."),
    AnswerArray("cluster_counts", "Rows that are nearest to each, (clusters,)."),
    AnswerArray("cost", "The sum of squared distances of scores, (1,)."),
    AnswerArray("held_out", "The number of rows held out, and their cost, (2,)."),
    *OF_DISTANCES,
)


def kernel_numbers(kernel: Kernel) -> Array:
    """Return a kernel, its gamma settled, as numbers (4,)."""
    name = kernel.spec()["kernel"]
    if name not in NAMES or kernel.gamma is None:
        raise UsageError(f"expected a kernel with its gamma, got {kernel!r}")
    own = [0.0, 0.0]
    if isinstance(kernel, Polynomial):
        own = [float(kernel.degree), kernel.coef0]
    elif isinstance(kernel, Matern):
        own = [kernel.nu, 0.0]
    return np.array([float(NAMES.index(str(name))), kernel.gamma, *own])


def kernel_of(numbers: Array) -> Kernel:
    """Return the kernel of an answer; raises PeerError if there is none."""
    which, gamma, first, second = numbers.tolist()
    if which not in range(len(NAMES)):
        raise PeerError(f"an answer has one of {len(NAMES)} kernels, got number {which}")
    try:
        name = NAMES[int(which)]
        return kernel_called(name, gamma, nu=first, degree=int(first), coef0=second)
    except (UsageError, OverflowError) as error:
        raise PeerError(f"an answer has a kernel: {error}") from error


def answered(
    kernel: Kernel, points: Array, found: LeadingAxes, counts: Array, others: Arrays
) -> Arrays:
    return {
        "points": points.astype(np.float32),
        "axes": found.axes,
        "mean": found.mean,
        "eigenvalues": found.eigenvalues,
        "energy": np.array([found.inside, found.inside + found.outside]),
        "kernel": kernel_numbers(kernel),
        "counts": counts,
        **others,
    }


def map_of(answer: Arrays) -> Landmarks:
    """Return the feature map of an answer: a schema with it lifts rows to the coordinates."""
    return Landmarks(kernel_of(answer["kernel"]), answer["points"].astype(np.float64))


def coefficients_of(answer: Arrays) -> Array:
    """Return (k, m): each direction as a linear combination of the points' features."""
    return np.asarray((map_of(answer).whitening @ answer["axes"]).T)


class KernelModel(NamedTuple):
    """A model of an answer: a schema with its points as landmarks, and limits of rows held out."""

    schema: Schema
    summary: KernelSummary  # directions of features and scaled readings
    rank: int  # directions that SPE and T2 are of
    rows: int
    limits: Limits | None

    @classmethod
    def of(cls, answer: Arrays, schema: Schema) -> KernelModel:
        """Make a model of an answer over rows of a schema; UsageError without their directions."""
        if "readings_axes" not in answer:
            raise UsageError(
                "a model needs the readings' directions, and the job had readings=false: run it"
                " with readings=true"
            )
        centered = bool(np.any(answer["mean"]))
        scored = replace(schema, features=map_of(answer), center="fleet" if centered else "none")
        rows = float(answer["counts"][0])
        features = _subspace(answer, scored, "", rows)
        linear = _subspace(answer, scored, "readings_", rows)
        return cls(
            scored, KernelSummary(features, linear), features.rank, int(rows), _limits(answer)
        )


def _subspace(answer: Arrays, schema: Schema, of: str, rows: float) -> Subspace:
    axes, eigenvalues = answer[f"{of}axes"], answer[f"{of}eigenvalues"]
    energy = max(float(answer[f"{of}energy"][0]), float(eigenvalues.sum()))
    return oriented(
        np.array(axes.T, order="C"),
        np.sqrt(eigenvalues),
        schema=schema.fingerprint,
        mean=answer[f"{of}mean"].copy(),
        weight=rows,
        energy=energy,
        spectral_bound=0.0,
    )


def _limits(answer: Arrays) -> Limits | None:
    """Return the limits of rows that were held out; None where there are none."""
    if "inside_limits" not in answer:
        return None
    names = ("limit_shares", "inside_limits", "t2_limits", "readings_limits")
    shares, inside, t2, readings = (tuple(answer[name].tolist()) for name in names)
    return Limits(shares, inside, t2, int(answer["counts"][1]), linear=readings)
