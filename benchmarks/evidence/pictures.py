"""The picture of all claims: how many times better than the best peer, on a log axis.

The PNG holds a digest of the figures that it shows, so a test without matplotlib can tell whether
it is that of the committed JSON.
"""

import hashlib
import json
import struct
import sys
from pathlib import Path
from typing import Any

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from evidence import page
from evidence.claim import Shown
from evidence.runs import RESULTS, records
from evidence.sections import SECTIONS

WORD = "Figures"
"""The PNG's text field that holds the digest."""


def bars(made: dict[str, dict[str, Any]]) -> list[Shown]:
    """Return the claims that have a ratio, section by section, as the page lists them."""
    found = [each for each in page.every(made) if each.ratio is not None]
    return sorted(found, key=lambda each: [*SECTIONS].index(each.claim.section))


def digest(made: dict[str, dict[str, Any]]) -> str:
    """Return a digest of what the picture shows."""
    shown = [(each.claim.section, each.claim.name, f"{each.ratio:.6g}") for each in bars(made)]
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


def draw(folder: Path = RESULTS) -> None:
    """Draw overview.png beside the JSON."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib.figure import Figure as Canvas
    from matplotlib.ticker import FuncFormatter

    made = records(folder)
    shown = bars(made)
    if not shown:
        return
    canvas = Canvas(
        figsize=(9.0, 1.2 + 0.17 * (len(shown) + 2 * len(SECTIONS))), layout="constrained"
    )
    ax = canvas.subplots()
    places, labels, at, section = [], [], 0.0, ""
    for each in shown:
        if each.claim.section != section:
            section = each.claim.section
            ax.text(0.01, at + 0.6, SECTIONS[section][0], transform=ax.get_yaxis_transform(),
                    fontsize=8, fontweight="bold", va="center")  # fmt: skip
            at += 1.6
        wins = each.verdict in ("ours", "kept", "even")
        color = "#0b6377" if wins else "#c2571a"
        ax.plot([1, each.ratio], [at, at], color=color, linewidth=2.2, solid_capstyle="butt")
        ax.plot(each.ratio, at, "o" if not each.claim.aside else "D", color=color, markersize=4)
        places.append(at)
        labels.append(each.claim.name)
        at += 1
    ax.axvline(1, color="black", linewidth=0.8)
    ax.set(xscale="log", ylim=(at, -0.6), yticks=places)
    ax.set_yticklabels(labels, fontsize=6.5)
    ax.set_xlabel("times better than the best peer, or than what is promised; left of 1 it wins")
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    ax.grid(axis="x", alpha=0.3)
    metadata = {"Software": None, WORD: digest(made)}
    canvas.savefig(folder / "overview.png", dpi=90, metadata=metadata)


if __name__ == "__main__":
    draw()
