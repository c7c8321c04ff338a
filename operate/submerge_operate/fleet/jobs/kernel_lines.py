"""What people read of an answer of kernel PCA, or of a choice of landmarks: lines by name."""

from __future__ import annotations

import numpy as np

from submerge import Array
from submerge.errors import PeerError
from submerge.features import Kernel, Matern, Polynomial
from submerge.jobs.kinds.kpca.answer import kernel_of
from submerge.jobs.kinds.kpca.remainder import FEWEST
from submerge_files.console.units import figure
from submerge_operate.fleet.jobs.results import JobResult

Lines = list[tuple[str, str]]

MOST_SHARES = 8
"""Directions that a line shows."""

SHOWN_LIMIT = 0.99
"""The share of rows whose limits a line shows."""

KERNEL_PCA = {"points", "kernel", "counts", "eigenvalues", "energy"}
LANDMARKS = {"points", "kernel", "counts"}
"""Arrays that lines are made of; an answer of another version may lack some."""


def kernel_pca_lines(result: JobResult) -> Lines:
    """Return what is known of directions in feature space."""
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
    return [*lines, ("limits", _limits(result))]


def landmark_lines(result: JobResult) -> Lines:
    """Return what is known of landmarks."""
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
    """Return which shares of all variation directions have."""
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
        return "none: --held-out 20% measures them on rows that are not learnt"
    at = int(np.abs(answer["limit_shares"] - SHOWN_LIMIT).argmin())
    said = (
        f"{100 * answer['limit_shares'][at]:.4g}% of the rows held out have SPE at most"
        f" {figure(float(answer['spe_limits'][at]))}, T2 {figure(float(answer['t2_limits'][at]))}"
    )
    if "readings_limits" in answer:
        said += f", SPE of readings {figure(float(answer['readings_limits'][at]))}"
    return said
