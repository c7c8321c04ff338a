"""Ratios to peers over commits: what a change does to speed, whatever the machine.

Each is submerge's time a row over a peer's, in calls of one size on the same rows, in turn: the
least of seven passes each. `--append` adds them to `ratios.json` under the commit, and draws the
page; without it those that have moved by more than 15 % since the last entry are printed, and the
status is 0 all the same: `.ci/run` ends with it.
"""

import datetime
import json
import os
import sys
import time
from pathlib import Path

import numpy as np
from sklearn.decomposition import IncrementalPCA

import blas  # noqa: F401 (before numpy: it sets one thread)
from recorded import commit, cpu, mark_of
from submerge import SAPCA

KEPT = Path(__file__).with_name("ratios.json")
PAGE, PICTURE = KEPT.with_suffix(".md"), KEPT.with_suffix(".png")
RANK, TURNS, NUMBERS = 10, 7, 1_500_000
FOUR, SKLEARN = "C += B'B", "IncrementalPCA"
CELLS = (
    *((dim, call, FOUR) for dim in (48, 200, 400) for call in (10, 500)),
    *((dim, 500, SKLEARN) for dim in (48, 200)),
)
MOVED = 0.15


class FourLines:
    """The sum of products, about zero: the least that exact learning costs."""

    def partial_fit(self, rows: np.ndarray) -> None:
        """Add a block's products."""
        known = self.__dict__.setdefault("scatter", np.zeros((rows.shape[1],) * 2))
        known += rows.T @ rows


PEERS = {FOUR: FourLines, SKLEARN: lambda: IncrementalPCA(RANK)}


def passed(engine: object, rows: np.ndarray, call: int) -> float:
    """Return the processor's seconds that an engine takes for all calls but the first."""
    engine.partial_fit(rows[:call])
    began = time.process_time()
    for start in range(call, len(rows), call):
        engine.partial_fit(rows[start : start + call])
    if hasattr(engine, "subspace"):
        _ = engine.subspace  # what waits is learnt
    return time.process_time() - began


def measured() -> dict[str, float]:
    """Return the ratio of each cell, by its name."""
    found, rng = {}, np.random.default_rng(0)
    for dim, call, peer in CELLS:
        rows = rng.normal(size=(max(8 * call, NUMBERS // dim), dim))
        turns = [
            (passed(SAPCA(RANK), rows, call), passed(PEERS[peer](), rows, call))
            for _ in range(TURNS)
        ]
        ours, theirs = map(min, zip(*turns, strict=True))
        found[f"{dim} columns, calls of {call}, over {peer}"] = round(ours / theirs, 3)
    return found


def moved(before: dict[str, float], now: dict[str, float]) -> list[str]:
    """Return a line for each ratio that is not what it was."""
    known = [name for name in now if name in before]
    return [
        f"{name}: {before[name]:.2f} before, {now[name]:.2f} now"
        for name in known
        if abs(now[name] / before[name] - 1) > MOVED
    ]


def entry() -> dict[str, object]:
    """Measure, and say of what and where."""
    load, date = round(os.getloadavg()[0], 1), f"{datetime.datetime.now():%Y-%m-%d}"
    about = {"commit": commit()[:8], "date": date, "cpu": cpu(), "load": load}
    return about | {"ratios": measured()}


def draw(entries: list[dict]) -> None:
    """Write the page: a picture of all entries, and a table of the last five."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    names = list(entries[-1]["ratios"])
    figure, axes = pyplot.subplots(figsize=(9, 4), layout="constrained")
    for name in names:
        values = [each["ratios"].get(name, np.nan) for each in entries]
        axes.plot(range(len(entries)), values, marker="o", label=name)
    axes.set(xticks=range(len(entries)), ylabel="time over the peer's", ylim=(0, None))
    axes.set_xticklabels([each["commit"] for each in entries], rotation=60)
    axes.legend(loc="center left", bbox_to_anchor=(1, 0.5), fontsize=8)
    figure.savefig(PICTURE, dpi=110, metadata={"Software": None})
    last = entries[-5:]
    head = "| | " + " | ".join(f"{each['commit']}, {each['date']}" for each in last) + " |"
    rule = "|---" * (1 + len(last)) + "|"
    cells = [[f"{each['ratios'].get(name, float('nan')):.2f}" for each in last] for name in names]
    table = [f"| {name} | {' | '.join(row)} |" for name, row in zip(names, cells, strict=True)]
    loads = ", ".join(f"{each['load']}" for each in last)
    text = f"""# Speed over commits

{mark_of("benchmarks/ratios.py")}

`python benchmarks/ratios.py --append`, one thread; {last[-1]["cpu"]}; load {loads}. Below
1 submerge is faster. `make bench` adds an entry; the gate names what has moved by more than 15 %.

![Ratios to peers by commit](ratios.png)

{chr(10).join([head, rule, *table])}
"""
    PAGE.write_text(text)


def main() -> None:
    """Append an entry, or print what has moved since the last."""
    entries = json.loads(KEPT.read_text()) if KEPT.exists() else []
    new = entry()
    lines = moved(entries[-1]["ratios"], new["ratios"]) if entries else []
    for line in lines:
        print(f"moved by more than {MOVED:.0%}: {line}")
    if "--append" in sys.argv:
        entries = [each for each in entries if each["commit"] != new["commit"]] + [new]
        KEPT.write_text(json.dumps(entries, indent=1) + "\n")
        draw(entries)


if __name__ == "__main__":
    main()
