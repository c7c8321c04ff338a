"""One-pass kernel k-means: two rings, beside the whole kernel, Nystrom and plain k-means.

Pourkamali-Anaraki & Becker, *A Randomized Approach to Efficient Kernel Clustering*, the rings: 2000
points each, radii 0.2 and 1.0, radial standard deviation .08, kernel <x, y>^2, r = 2, l = 10. Error
is |K - K_hat| / |K|, accuracy that of the best pairing. The points are drawn as the paper says; its
own draw is not published. What the paper prints stands beside it.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import clustering
from papers.frame import Curve, Figure, Panel, command
from report import Table

PRINTED = {"plain k-means": 0.53}
"""Accuracy that the paper prints."""


def figure(quick: bool) -> Figure:
    """Measure the table of rings."""
    table = clustering.rings(quick)
    columns = table.columns | {"accuracy, printed": ".2f"}
    rows = [(*row, PRINTED.get(str(row[0]))) for row in table.rows]
    table = type(table)(table.title, columns, rows, table.notes)
    return Figure(
        "one_pass_rings",
        "Pourkamali-Anaraki & Becker: two rings",
        "Two rings by one-pass kernel k-means: error of the kernel matrix, and accuracy.",
        "generated, as the paper describes them",
        ("core/submerge/kernel", "core/submerge/features"),
        panels=_panels(table),
        tables=[table],
    )


def _panels(table: Table) -> list[Panel]:
    """Return error and accuracy over Nystrom's landmarks; one pass is the same for all."""
    rows = {str(row[0]): row for row in table.rows}
    x, panels = [float(m) for m in clustering.LANDMARKS], []
    for i, what in ((1, "error |K - K_hat| / |K|"), (3, "accuracy")):
        theirs = [float(rows[f"Nystrom, m = {m:.0f}"][i]) for m in x]
        ours = float(rows["one pass, l = 10"][i])
        curves = [
            Curve("one pass, l = 10", x, [ours] * len(x)),
            Curve("Nystrom, m landmarks", x, theirs, whose="theirs"),
        ]
        panels.append(Panel("two rings, r = 2", "landmarks m", what, curves))
    return panels


if __name__ == "__main__":
    command(figure)
