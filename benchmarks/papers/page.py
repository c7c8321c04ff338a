"""The page of all figures, from the JSON that is committed: the same JSON gives the same bytes.

    python benchmarks/papers/page.py >benchmarks/papers.md

Each figure says at which commit it was measured. With `--marked` those whose measured files have
changed since say so, too: that depends on the working tree, and is not committed.
"""

import json
import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from papers.frame import RESULTS, markdown
from recorded import changed

ORDER = (
    "federated/motes_errors",
    "federated/motes_subspace",
    "federated/synth",
    "federated/components",
    "federated/moving_rank",
    "federated/spectrum",
    "federated/time_order",
    "federated/merge_error",
    "ny_kpca",
    "one_pass",
    "dis_kpca",
    "dis_kpca_large",
    "input_sparsity",
    "federated/scaling",
    "federated/peak_memory",
    "scaling_laws",
)
TITLES = {
    "federated/motes_errors": "Federated PCA: error over time on mote sets (Figure 1 a to d)",
    "federated/motes_subspace": "Federated PCA: error of the subspace on mote sets (Figure 1 f)",
    "federated/synth": "Federated PCA: errors over alpha (Figure 1 e)",
    "federated/components": "Federated PCA: components over time, beside SPIRIT",
    "federated/moving_rank": "Federated PCA: bounds and hold-off, where the rank moves",
    "federated/spectrum": "Federated PCA: singular values",
    "federated/time_order": "Federated PCA: permuted rows (Figure 8)",
    "federated/merge_error": "Federated PCA: errors of a merge",
    "ny_kpca": "NY-KPCA: Figures 1 and 2",
    "one_pass": "One-pass kernel k-means: Table 1, Figures 1 to 3",
    "dis_kpca": "disKPCA: Figures 1 and 2",
    "dis_kpca_large": "disKPCA: Figures 3 to 6",
    "input_sparsity": "Input sparsity: section 3.2.2",
    "federated/scaling": "Federated PCA, Figure 2: one to 32 nodes",
    "federated/peak_memory": "Federated PCA, Table 1: memory",
    "scaling_laws": "Scaling laws: columns, rank, nodes, depth",
}
HEAD = """# Figures of papers

Experiments of the paper behind the [stream](../docs/mathematics.md), *Federated PCA with Adaptive
Rank Estimation*, and of those behind the [kernel methods](../docs/kernels.md), one command each.
`--quick` takes seconds; `--json` and `--png` write the figure. Lines of *ours* are solid, those of
rivals that ran here are dashed. Where a paper prints numbers that we have, they stand beside ours;
where it has curves alone, they do not. This page is made from `benchmarks/papers/results/*.json` by
`python benchmarks/papers/page.py`."""


def page(*, marked: bool = False) -> str:
    """Return the page; with marks, it depends on the files that figures measure."""
    names = [name for name in ORDER if _path(name).exists()]
    return "\n\n".join([HEAD, *(_section(name, marked=marked) for name in names)])


def _path(name: str) -> Path:
    return RESULTS / f"{name}.json"


def _section(name: str, *, marked: bool) -> str:
    made = json.loads(_path(name).read_text())
    parts = [f"## {TITLES[name]}"]
    if made["panels"]:
        parts.append(f"![{made['what']}](papers/results/{name}.png)")
    if marked and changed(made):
        parts.append(f"Measured at commit {made['commit']}: what it measures has changed since.")
    return "\n\n".join([*parts, markdown(made)])


if __name__ == "__main__":
    print(page(marked="--marked" in sys.argv))
