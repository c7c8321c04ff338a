"""Federated PCA, Figure 2 a-b: processor time of 1 to 32 nodes, in all and amortised.

Grammenos, Mendoza-Smith, Mascolo & Crowcroft, *Federated PCA with Adaptive Rank Estimation*,
arXiv:1907.08059v1. Rows of Synth(alpha) with d = 1000 are cut into equal chunks, one for each node;
models of rank 10 are merged up a binary tree. As in the paper, amortised time is that of learning
and merging over the number of nodes. Beside it stands what a fleet with a core for each node would
wait for its root: the slowest path of learning and merges, without a network.

Nodes learn one after another here, while the machine has other work: the slowest node had a slow
moment. So the table also has each node's time over what one node took for the same rows in turn
with it.

The authors' published script (`test_spca_federated.m`) runs T = 32k, 64k, 96k and 128k, and labels
the curves 128K, 256K, 384K and 512K: a factor of four goes into the labels twice. Its time is that
on the wall of a pool of workers, and of the merges it keeps those of the last level. Each worker
draws its own eigenvectors there. Here one stream is cut, all merges count, and the clock is a
core's. The paper takes the mean over alphas from .0001 to 4, on which times hardly depend: here
alpha is 1, and others tell about errors.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from papers.federated.fleet import (
    FIRST,
    OURS,
    OURS_AS_PAPER,
    PRINTED,
    WAYS,
    Stream,
    Taken,
    run,
)
from papers.frame import Curve, Figure, Panel, command
from report import Table

NODES, OTHER_NODES = (1, 2, 4, 8, 16, 32), (1, 8, 32)
DIM, QUICK_DIM = 1000, 400
LENGTHS = (128_000, 256_000, 384_000, 512_000)
ALL_WAYS_AT = 128_000
"""Rows of the stream that all ways learn, and of those with other spectra."""

ALPHA, ALPHAS = 1.0, (0.001, 0.1, 2.0, 4.0)
"""The spectrum of all lengths, and others; times hardly depend on it, errors do."""

SHORT = {OURS: "", OURS_AS_PAPER: ", block 50", PRINTED: ", as printed"}
"""What a curve's label says of its method."""

Found = dict[Stream, dict[tuple[str, int], Taken]]


def measured(quick: bool) -> Found:
    """Let all fleets learn all streams; quick ones are a twentieth as long."""
    less, dim, piece = (20, QUICK_DIM, 50) if quick else (1, DIM, 1000)
    found: Found = {}
    for rows, alpha in [(rows, ALPHA) for rows in LENGTHS] + [(ALL_WAYS_AT, a) for a in ALPHAS]:
        every = rows == ALL_WAYS_AT and alpha == ALPHA
        ways = WAYS if every else {OURS: WAYS[OURS]}
        stream = Stream(rows // less, alpha, dim, piece)
        found[stream] = run(stream, ways, NODES if alpha == ALPHA else OTHER_NODES)
    return found


def figure(quick: bool) -> Figure:
    """Measure panels and the time by part."""
    found = measured(quick)
    lengths = {stream.rows: taken for stream, taken in found.items() if stream.alpha == ALPHA}
    dim = next(iter(found)).dim
    return Figure(
        "federated/scaling",
        "Grammenos et al., arXiv:1907.08059v1: Figure 2 a-b",
        "Processor time of learning and merging by 1 to 32 nodes, in all and amortised.",
        f"generated: Synth(alpha), eigenvalues i^-alpha, d = {dim}, in chunks of equal length",
        (
            "core/submerge/_linalg.py",
            "core/submerge/pca",
            "benchmarks/as_printed.py",
            "benchmarks/papers/federated/fleet.py",
            "benchmarks/papers/federated/scaling.py",
        ),
        [
            _panel("in all", lengths, lambda t, name, n: n * t[name, n].amortised(n)),
            _panel("amortised", lengths, lambda t, name, n: t[name, n].amortised(n)),
            _panel("target: at most 1.2", lengths, _over_ideal, label="amortised over 1 / nodes"),
            _panel("a core each: root ready after", lengths, lambda t, name, n: t[name, n].ready),
        ],
        [_parts(lengths), _spectra(found)],
    )


def _panel(title: str, lengths: dict, value, *, label: str = "processor seconds") -> Panel:
    """Return a curve for each length and way, over the number of nodes."""
    x, curves = [float(n) for n in NODES], []
    for rows, taken in lengths.items():
        for name in dict.fromkeys(name for name, _ in taken):
            y = [value(taken, name, n) for n in NODES]
            short = f"T = {rows:,}" + SHORT[name]
            curves.append(Curve(short, x, y, whose=WAYS[name].whose))
    return Panel(title, "nodes", label, curves, log_x=True, log_y=label.endswith("seconds"))


def _over_ideal(taken: dict, name: str, nodes: int) -> float:
    """Return amortised time over 1 / nodes of that of one node."""
    return nodes * taken[name, nodes].amortised(nodes) / taken[name, 1].amortised(1)


def _parts(lengths: dict) -> Table:
    """Return time by part, and how near amortised time is to 1 / nodes."""
    rows: list[tuple[object, ...]] = []
    for length, taken in lengths.items():
        for (name, nodes), each in taken.items():
            rows.append(
                (
                    length,
                    name,
                    nodes,
                    each.learning,
                    each.first / each.learning,
                    each.merging,
                    each.amortised(nodes),
                    _over_ideal(taken, name, nodes),
                    nodes * each.slowest / each.learning,
                    each.uneven,
                    1e3 * (each.ready - each.slowest),
                    taken[name, 1].ready / each.ready,
                )
            )
    columns = {"T": ",d", "method": "", "nodes": "d", "learning, s": ".3f"}
    columns |= {f"of it the first {FIRST} rows": ".2%", "merging, s": ".4f"}
    columns |= {"amortised, s": ".4f", "over 1 / nodes": ".3f", "slowest node over the mean": ".2f"}
    columns |= {"most over one node": ".2f"}
    columns |= {"after it, ms": ".2f", "times faster, a core each": ".1f"}
    return Table(
        f"Time by part, Synth({ALPHA:g})",
        columns,
        rows,
        "The target is at most 1.20 over 1 / nodes: amortised time times the nodes, over the time"
        " of one node. Most over one node: of a node's time over what one node took for the same"
        " rows, in turn with it. After it: from the end of the slowest node until the root's model."
        " Nodes learn one after another, so that their mean and their slowest are of different"
        " moments of a busy machine; the pairs are not.",
    )


def _spectra(found: Found) -> Table:
    """Return how far the root is above the optimum, at each end of the number of nodes."""
    rows: list[tuple[object, ...]] = []
    for stream, taken in sorted(found.items(), key=lambda pair: (pair[0].alpha, pair[0].rows)):
        for name in dict.fromkeys(name for name, _ in taken):
            errors = [taken[name, n].over - 1 if (name, n) in taken else None for n in NODES]
            rows.append((stream.alpha, stream.rows, name, *errors))
    columns = {"alpha": "g", "T": ",d", "method": ""}
    columns |= {f"{n} node{'s' if n > 1 else ''}": ".3%" for n in NODES}
    return Table(
        "Squared error of the root above the offline optimum",
        columns,
        rows,
        "The optimum is the best subspace of rank 10 of all rows, by their whole scatter. The"
        " target is at most .5 %.",
    )


if __name__ == "__main__":
    command(figure)
