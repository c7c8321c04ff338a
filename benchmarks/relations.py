"""Relations: a gain that is .3 off, found without an alarm, and what two halves say of each other.

Forty machines of a generated plant without faults, in which one channel of one machine, both drawn,
moves by 1.3 or .7 of what it did. `first` are the shares in which that machine comes first in
`submerge nodes unlike`, `channel` those in which the channel is named as well, and `off` is the
largest error of the size, over the change. `quiet` are the pairs of halves of one machine between
which `submerge model compare` says nothing, and `changed` those with the planted change in the
second half that name it first, within a tenth of its size.
"""

from __future__ import annotations

import sys
from collections import defaultdict

import click
import numpy as np

import blas
from page import document
from plants.plant import PLANTS, plant
from report import Table
from submerge.pca.relations import changes, unlike
from submerge.pca.whole_scatter import WholeScatter

NODES, TRIED = 40, 8


def planted(rows: np.ndarray, channel: int, ratio: float) -> WholeScatter:
    """Return a summary of rows in which one channel moves by so much more about its mean."""
    changed, mean = rows.copy(), rows[:, channel].mean()
    changed[:, channel] = mean + ratio * (rows[:, channel] - mean)
    return WholeScatter.of_rows(changed, "")


def right(found: float, ratio: float) -> float:
    """Return how far a size is from the planted one, over the change."""
    return abs(found - ratio) / abs(ratio - 1)


def run(name: str, seed: int, days: int, told: dict[str, list[tuple[float, ...]]]) -> None:
    """Add what one fleet says, by kinds of channels."""
    made = plant(name, seed=seed, nodes=NODES, days=days, quiet_days=days, faults=())
    rows = [made.rows(node, 0, made.n_rows) for node in range(NODES)]
    rows = [each[~np.isnan(each).any(axis=1)] for each in rows]
    parts = {str(i): WholeScatter.of_rows(each, "") for i, each in enumerate(rows)}
    draw = np.random.default_rng(seed)
    for _ in range(TRIED):
        channel, node = int(draw.integers(len(made.channels))), int(draw.integers(NODES))
        ratio = 1.3 if draw.random() < 0.5 else 0.7
        kind = f"{name} {made.channels[channel].name.partition('/')[2]}".strip()
        changed = parts | {str(node): planted(rows[node], channel, ratio)}
        who, what = unlike(changed).nodes[0]
        named = who == str(node) and what.channel == channel
        first, second = np.array_split(rows[node], 2)
        before = WholeScatter.of_rows(first, "")
        quiet = not changes(before, WholeScatter.of_rows(second, ""))
        said = changes(before, planted(second, channel, ratio))
        whole = bool(said) and said[0].channel == channel and right(said[0].ratio, ratio) < 0.1
        off = right(what.ratio, ratio) if named else np.nan
        told[kind].append((who == str(node), named, off, quiet, whole))


@click.command(help=__doc__)
@click.option("--plant", "names", type=click.Choice([*PLANTS]), multiple=True)
@click.option("--seeds", default=10, show_default=True, help="Fleets of each plant.")
@click.option("--days", default=5, show_default=True, help="Virtual days of each.")
def main(names: tuple[str, ...], seeds: int, days: int) -> None:
    """Run it, and print the page."""
    pools, told = blas.check(), defaultdict[str, list[tuple[float, ...]]](list)
    for name in names or PLANTS:
        for seed in range(seeds):
            run(name, seed, days, told)
    lines = []
    for kind, each in told.items():
        shares = np.array(each, dtype=float)
        off = np.nanmax(shares[:, 2], initial=0.0)
        lines.append((kind, len(each), *shares[:, :2].mean(axis=0), off, *shares[:, 3:].mean(0)))
    columns = {"channels of": "s", "tries": "d", "first": ".0%", "channel": ".0%", "off": ".0%"}
    columns |= {"quiet": ".0%", "changed": ".0%"}
    table = Table(f"One gain of {NODES} machines off by .3, {seeds} fleets", columns, lines)
    click.echo(document(sys.modules[__name__], " ".join(sys.argv[1:]), [table], pools))


if __name__ == "__main__":
    main()
