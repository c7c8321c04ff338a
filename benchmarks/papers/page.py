"""The page of all figures, from the JSON that is committed: the same JSON gives the same bytes.

    python benchmarks/papers/page.py >benchmarks/papers.md

Each figure says at which commit it was measured. With `--marked` those whose measured files have
changed since say so, too: that depends on the working tree, and is not committed.
"""

import json
import sys
import tomllib
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from papers.frame import RESULTS, markdown
from recorded import changed
from report import Table

TITLES = {
    "federated/synth": "Federated PCA, Figures 1 a, b, e, f, 3 and 4: Synth(alpha)",
    "federated/motes": "Federated PCA, Figures 1 c, 1 d, 6 and 7: sets of motes",
    "federated/scaling": "Federated PCA, Figure 2: one to 32 nodes",
    "federated/spectrum": "Federated PCA, Figure 5: singular values",
    "federated/time_order": "Federated PCA, Figure 8: permuted rows",
    "federated/peak_memory": "Federated PCA, Table 1: memory",
    "federated/moving_rank": "Federated PCA: bounds and hold-off, where the rank moves",
    "federated/merge_error": "Federated PCA: errors of a merge",
    "federated/gaps": "Federated PCA, future work: gaps, with scaling and without",
    "ny_kpca": "NY-KPCA: Figures 1 and 2",
    "one_pass": "One-pass kernel k-means: Table 1, Figures 1 to 3",
    "dis_kpca": "disKPCA: Figures 1 and 2",
    "dis_kpca_large": "disKPCA: Figures 3 to 6",
    "input_sparsity": "Input sparsity: section 3.2.2",
    "scaling_laws": "Scaling laws: columns, rank, nodes, depth",
}
ORDER = tuple(TITLES)

VERDICTS = tomllib.loads(Path(__file__).with_name("verdicts.toml").read_text())["figure"]

HEAD = """# Figures of papers

Experiments of the paper behind the [stream](../docs/mathematics.md), *Federated PCA with Adaptive
Rank Estimation*, and of those behind the [kernel methods](../docs/kernels.md), one command each.
`--quick` takes seconds; `--json` and `--png` write the figure. Lines of *ours* are solid, those of
rivals that ran here are dashed. Where a paper prints numbers, they stand beside ours; where it has
curves alone, they do not. This page is made from `benchmarks/papers/results/*.json` by
`python benchmarks/papers/page.py`."""


def page(*, marked: bool = False) -> str:
    """Return the page; with marks, it depends on the files that figures measure."""
    names = [name for name in ORDER if _path(name).exists()]
    columns = {"number": "", "what it shows": "", "measured by": "", "found": ""}
    said: dict[str, list[tuple[object, ...]]] = {}
    for each in VERDICTS:
        row = each["number"], each["shows"], f"`{each['measured_by']}.py`", each["found"].strip()
        said.setdefault(each["paper"], []).append(row)
    tables = [Table(paper, columns, rows) for paper, rows in said.items()]
    parts = [
        HEAD,
        "## What the papers show, and what we found",
        "Verdicts on the kernel methods stand with their figures, below.",
        *(each.markdown for each in tables),
    ]
    return "\n\n".join([*parts, *(_section(name, marked=marked) for name in names)])


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
