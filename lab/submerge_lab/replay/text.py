"""What a replay prints for people: a line for each figure."""

from __future__ import annotations

from submerge_files.console.units import size_of
from submerge_lab.replay.kernel import KernelFigures
from submerge_lab.replay.kernel_excess import MOST_ROWS
from submerge_lab.replay.run import ReplayOutcome


def text(outcome: ReplayOutcome) -> str:
    """Return the outcome as text."""
    filled = " as filled" if outcome.filled else ""
    bounds = f"frobenius {outcome.frobenius_bound:.6g}, spectral {outcome.spectral_bound:.6g}"
    kernel = outcome.kernel
    lines = [
        ("algorithm", outcome.algorithm),
        ("rows", f"{outcome.rows} of {outcome.dim} columns"),
    ]
    if kernel is not None:
        size = f"{kernel.features} features, {kernel.map}"
        lines.append(("kernel", f"{kernel.kernel}, gamma {kernel.gamma:.6g}; {size}"))
    lines += [
        ("rank", f"{outcome.rank}"),
        ("error", f"{outcome.error:.6g} per row, over all rows{filled}"),
        ("optimum", f"{outcome.optimum:.6g} per row, exact PCA at that rank"),
        ("ratio", _ratio(outcome.ratio)),
        *_at_ranks(outcome),
        *_hidden(outcome),
        *_excess(kernel),
        ("bounds", bounds),
        ("energy", f"{outcome.energy:.6g} per row"),
        ("speed", f"{outcome.rows_per_s:,.0f} rows/s, {outcome.seconds:.3g} s in all"),
        ("memory", f"{size_of(outcome.peak_bytes, decimals=1)} at most, one estimator"),
        ("fall-backs", f"{outcome.fallbacks} blocks"),
    ]
    counts = {
        "values that were 0 and read as missing": outcome.zeros,
        "missing values filled": outcome.filled,
        "rows with missing values dropped": outcome.dropped,
    }
    lines += [("gaps", f"{what}: {count}") for what, count in counts.items() if count]
    lines += [("note", note) for note in outcome.notes]
    return "\n".join(f"{name:<12} {value}" for name, value in lines)


def _ratio(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.9g}"


def _at_ranks(outcome: ReplayOutcome) -> list[tuple[str, str]]:
    words = {"lo": "the least that the rule chose", "hi": "the largest"}
    return [
        (
            f"fixed {name}",
            f"rank {each.rank}, {words[name]}: error {each.error:.6g}, ratio {_ratio(each.ratio)}",
        )
        for name, each in (outcome.bounds or {}).items()
    ]


def _hidden(outcome: ReplayOutcome) -> list[tuple[str, str]]:
    if outcome.hidden_error is None:
        return []
    return [("hidden", f"{outcome.hidden_error:.6g} per known value that was hidden on purpose")]


def _excess(kernel: KernelFigures | None) -> list[tuple[str, str]]:
    if kernel is None:
        return []
    if kernel.excess is None:
        return [("excess", "undefined: exact kernel PCA at that rank misses nothing")]
    return [("excess", f"{kernel.excess:.3g} % over exact kernel PCA, on at most {MOST_ROWS} rows")]
