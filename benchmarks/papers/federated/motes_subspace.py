"""Figure 1 f: error of the subspace against offline PCA on the mote sets, the mean square of |U|.

The authors' `real_sapca_eval.m` and `test_sapca_real.m`: settings as in Figure 1 a to d, at the end
of the stream. The error is the mean square of |U| - |V| over the entries of as many directions as a
method has, V the offline directions in order of variance. The script takes |V| but U with its
signs, so that its figure also counts signs, which are free; here both are absolute.

It is no distance of subspaces, and rewards methods that show few directions. So the table
has the largest angle to the offline subspace of the same rank beside it.
"""

import sys
from pathlib import Path

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dataclasses import replace

import measure
from papers.federated.follow import ROUNDING, absolute_mse, offline
from papers.federated.methods import MEASURED, compared, whose
from papers.federated.motes_errors import BLOCK, FORGETTING
from papers.federated.streams import SETS, described, motes
from papers.frame import Curve, Figure, Panel, about, command
from report import Table


def figure(quick: bool) -> Figure:
    """Measure every set."""
    errors: dict[str, list[float]] = {}
    rows: list[tuple[object, ...]] = []
    sets = []
    for name in measure.progress(SETS, "federated: motes, subspace"):
        chosen = motes(name, quick=quick)
        sets.append(chosen)
        true = offline(chosen.rows)
        found = compared(chosen.rank, chosen.rows, BLOCK, forgetting=FORGETTING)
        for method, each in found.items():
            rank = each.basis.shape[1]
            error = absolute_mse(each.basis, true)
            angle = measure.degrees(true[:, :rank], each.basis)
            errors.setdefault(method, []).append(error)
            rows.append((chosen.title, method, rank, error, angle))
    x = [float(i + 1) for i in range(len(sets))]
    curves = [Curve(method, x, y, whose=whose(method)) for method, y in errors.items()]
    title = "(room): the generated room instead" if not all(each.is_real for each in sets) else ""
    names = [
        name if each.is_real else f"{name}\n(room)" for name, each in zip(SETS, sets, strict=True)
    ]
    panel = Panel(title, "mote set", "error of abs U", curves, log_y=True, tabled=False)
    panel = replace(panel, x_names=names, least=ROUNDING)
    columns = {"rows": "", "method": "", "rank": "d", "error of abs U": ".3g"}
    columns |= {"largest angle, degrees": ".3g"}
    return Figure(
        "federated/motes_subspace",
        "Grammenos et al., arXiv:1907.08059v1: Figure 1 f (`test_sapca_real.m`)",
        "Error of |U| against offline PCA on four mote sets, after all rows.",
        described(sets),
        (*MEASURED, "benchmarks/papers/federated/motes_subspace.py"),
        [panel],
        [Table("Against offline PCA", columns, rows, about(__doc__))],
    )


if __name__ == "__main__":
    command(figure)
