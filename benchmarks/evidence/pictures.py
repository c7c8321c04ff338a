"""Pictures of the evidence: claims by section and one by one; error and memory; speed.

    python benchmarks/evidence/pictures.py

A PNG holds a digest of the figures that it shows, so a test without matplotlib can tell whether it
is that of the committed JSON.
"""

import hashlib
import json
import struct
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evidence import page
from evidence.claims_engine import BOUNDED, CASES, STREAMS
from evidence.runs import RESULTS, records
from evidence.sections import SECTIONS

Made = dict[str, dict[str, Any]]

WORD = "Figures"
"""The PNG's text field that holds the digest."""

OURS, THEIRS = "#0b6377", "#c2571a"
FLOOR = 1e-6
"""Errors nearer to the optimum are drawn here: an axis of logarithms has no zero."""


def overview(made: Made) -> list[list[object]]:
    """Return (section, name, ratio, ours wins, peer is no rival) of claims with a ratio."""
    found = [each for each in page.every(made) if each.ratio is not None]
    found.sort(key=lambda each: [*SECTIONS].index(each.claim.section))
    return [
        [
            each.claim.section,
            each.claim.name + (" (quick run)" if made[each.claim.ours.run]["quick"] else ""),
            float(f"{each.ratio:.6g}"),
            "*" not in each.verdict,
            each.claim.aside,
        ]
        for each in found
    ]


def sections(made: Made) -> list[list[object]]:
    """Return (section, ratio, ours wins) of claims beside a rival or what is asked."""
    return [
        [section, ratio, wins] for section, _, ratio, wins, aside in overview(made) if not aside
    ]


def accuracy(made: Made) -> list[list[object]]:
    """Return (stream, method, peak kB, excess error) of methods that show rank 10."""
    if "equal_rank" not in made:
        return []
    rows = made["equal_rank"]["tables"][0]["rows"]
    found = [
        [stream, method, float(kb), max(FLOOR, over - 1)]
        for stream, method, _, rank, over, kb in rows
        if rank == 10
    ]
    return found if not made["equal_rank"]["quick"] else []


def speed(made: Made) -> list[list[object]]:
    """Return (rank, contender, d, µs a row) of contenders of bounded memory."""
    if "speed" not in made or made["speed"]["quick"]:
        return []
    tables = {each["title"]: each for each in made["speed"]["tables"]}
    found: list[list[object]] = []
    for dim, rank in CASES:
        title = next(each for each in tables if each.startswith(f"d = {dim}, r = {rank},"))
        found += [
            [rank, row[0], dim, row[2]]
            for row in tables[title]["rows"]
            if row[0] in ("submerge", *BOUNDED)
        ]
    return found


def draw_overview(ax: Any, shown: list[list[Any]]) -> None:
    """Draw a line from 1 to each ratio, section by section."""
    places, labels, at, last = [], [], 0.0, ""
    for section, name, ratio, wins, aside in shown:
        if section != last:
            last = section
            ax.text(0.01, at + 0.6, SECTIONS[section][0], transform=ax.get_yaxis_transform(),
                    fontsize=8, fontweight="bold", va="center")  # fmt: skip
            at += 1.6
        color = OURS if wins else THEIRS
        ax.plot([1, ratio], [at, at], color=color, linewidth=2.2, solid_capstyle="butt")
        ax.plot(ratio, at, "D" if aside else "o", color=color, markersize=4)
        places.append(at)
        labels.append(name)
        at += 1
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set(xscale="log", ylim=(at, -0.6), yticks=places)
    ax.set_yticklabels(labels, fontsize=6.5)
    ax.set_xlabel("times better than the best peer, or than what is asked; left of 1 it wins.\n"
                  "Diamonds: the peer is no rival, but the rows themselves or another way of ours.",
                  fontsize=8)  # fmt: skip
    _plain(ax.xaxis)
    ax.grid(axis="x", alpha=0.3)


def draw_sections(ax: Any, shown: list[list[Any]]) -> None:
    """Draw a line for each section, and on it a dot for each claim."""
    names = [name for name in SECTIONS if any(each[0] == name for each in shown)]
    for at, name in enumerate(names):
        ratios = [(ratio, wins) for section, ratio, wins in shown if section == name]
        # Dots of one line lie over one another: each is a little lower than the one before.
        for i, (ratio, wins) in enumerate(sorted(ratios)):
            place = at - 0.3 + 0.6 * (i + 0.5) / len(ratios)
            ax.plot(ratio, place, "o", color=OURS if wins else THEIRS, markersize=4, alpha=0.8)
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set(xscale="log", ylim=(len(names) - 0.4, -0.6), yticks=range(len(names)))
    ax.set_yticklabels([SECTIONS[name][0] for name in names], fontsize=8)
    ax.set_xlabel("times better than the best peer, or than what is asked; left of 1 the peer wins",
                  fontsize=8)  # fmt: skip
    _plain(ax.xaxis)
    ax.grid(axis="x", alpha=0.3)


def draw_accuracy(axes: list[Any], shown: list[list[Any]]) -> None:
    """Draw a panel for each stream: down and left is better."""
    rivals = sorted({each[1] for each in shown if not each[1].startswith("submerge")})
    colors = {name: f"C{i}" for i, name in enumerate(rivals)}
    for ax, stream in zip(axes, STREAMS, strict=True):
        for _, method, kb, excess in (each for each in shown if each[0] == stream):
            ours, whole = method not in colors, method == "submerge"
            shape = "o" if whole else "D" if ours else "s"
            filled = "none" if ours and not whole else "full"
            color, size = (OURS, 7) if ours else (colors[method], 4)
            ax.plot(kb, excess, shape, label=method, color=color, markersize=size, fillstyle=filled)
        ax.set(xscale="log", yscale="log", xlabel="peak kB", ylabel="error over the optimum, -1")
        ax.set_title(stream, fontsize=8)
        ax.grid(alpha=0.3)
    named = dict(zip(*reversed(axes[0].get_legend_handles_labels()), strict=True))
    axes[0].figure.legend(named.values(), named, loc="outside lower center", ncols=6, fontsize=8)


def draw_speed(axes: list[Any], shown: list[list[Any]]) -> None:
    """Draw a panel for each rank: a curve for each contender."""
    for ax, rank in zip(axes, (10, 50), strict=True):
        for name in ("submerge", *BOUNDED):
            points = [(dim, time) for r, of, dim, time in shown if (r, of) == (rank, name)]
            ours = name == "submerge"
            ax.plot(*zip(*points, strict=True), "o-" if ours else "s--", label=name, markersize=3,
                    color=OURS if ours else None, linewidth=1.8 if ours else 1.2)  # fmt: skip
        ax.set(xscale="log", yscale="log", xlabel="d", ylabel="µs a row", title=f"r = {rank}")
        ax.grid(alpha=0.3)
        ax.legend(fontsize=6)


PICTURES: dict[str, Callable[[Made], list[list[object]]]] = {
    "sections": sections,
    "overview": overview,
    "accuracy": accuracy,
    "speed": speed,
}
"""By name, what a picture shows; without figures there is none."""


def draw(folder: Path = RESULTS) -> None:
    """Draw every picture of a folder's JSON beside it."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure as Canvas

    made = records(folder)
    for name, figures in PICTURES.items():
        shown = figures(made)
        if not shown:
            continue
        canvas: Any = Canvas(layout="constrained")
        if name == "overview":
            canvas.set_size_inches(9.0, 1.4 + 0.17 * (len(shown) + 2 * len(SECTIONS)))
            draw_overview(canvas.subplots(), shown)
        elif name == "sections":
            canvas.set_size_inches(8.0, 3.4)
            draw_sections(canvas.subplots(), shown)
        elif name == "accuracy":
            canvas.set_size_inches(12.0, 6.0)
            draw_accuracy(list(canvas.subplots(2, 4).flat), shown)
        else:
            canvas.set_size_inches(9.0, 3.6)
            draw_speed(list(canvas.subplots(1, 2)), shown)
        metadata = {"Software": None, WORD: digest(shown)}
        canvas.savefig(folder / f"{name}.png", dpi=90, metadata=metadata)


def digest(shown: list[list[object]]) -> str:
    """Return a digest of what a picture shows."""
    return hashlib.sha256(json.dumps(shown).encode()).hexdigest()


def digest_of(png: bytes) -> str | None:
    """Return the digest that a picture holds."""
    at = 8
    while at < len(png):
        size, kind = struct.unpack(">I4s", png[at : at + 8])
        if kind == b"tEXt":
            word, _, text = png[at + 8 : at + 8 + size].partition(b"\0")
            if word.decode() == WORD:
                return text.decode()
        at += 12 + size
    return None


def _plain(axis: Any) -> None:
    from matplotlib.ticker import FuncFormatter

    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))


if __name__ == "__main__":
    draw()
