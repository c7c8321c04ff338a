"""Which channel is to blame for a fault: the ways to ask, and how often they are right.

Faults of the generated plants (docs/plants.md) in 30 virtual days, found by five of eight rows over
a limit that no more than one hour in 336 passes; and of rows that a known model makes, with one
channel that has a direction of its own and noise that is uneven. Of the rows over a limit within
fifty of the first, shares are averaged: does the right channel come first, or into the first three?

- share of SPE: what `contributions` says, of the squared residual.
- RBC: reconstruction-based contributions, to SPE, to T2, and to both.
- over the usual: divided by what that is on average at the node while all is well. "RBC of
  both, over the usual" is `Reconstruction.blame`.
"""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

import measure
from plant_streams import PLANTS, Seen, scaled, streamed
from plants.plant import Plant, plant
from report import Table, command
from submerge import SAPCA, Array, Schema, Subspace, contributions, hotelling, spe
from submerge.pca.missing import fill
from submerge.pca.reconstruct import Reconstruction
from submerge_lab.plants.ordered import product


def reached(scores: Array) -> Array:
    """Return what five of the last eight scores reach, row by row."""
    return np.pad(np.sort(sliding_window_view(scores, 8), axis=1)[:, 3], (7, 0))


def ways(model: Subspace) -> dict[str, Callable[[Array], Array]]:
    """Return what each way of blaming says of rows, (n, channels), before it is made a share."""
    recall = Reconstruction(model)
    return {
        "share of SPE": lambda rows: contributions(rows, model),
        "RBC of SPE": lambda rows: recall.contributions(rows, "spe"),
        "RBC of T2": lambda rows: recall.contributions(rows, "t2"),
        "RBC of both": lambda rows: recall.contributions(rows, "distance"),
    }


def ranked(found: Array) -> Array:
    """Return channels by their shares, averaged over rows, largest first."""
    total = found.sum(axis=1, keepdims=True)
    return np.argsort(-np.divide(found, total, where=total > 0, out=found * 0.0).mean(axis=0))


class Tally:
    """How often the right channel came first, and into the first three."""

    def __init__(self) -> None:
        self.hits: dict[str, list[tuple[bool, bool]]] = {}

    def blame(self, model: Subspace, rows: Array, usual: dict[str, Array], right: set[int]) -> None:
        """Ask all ways about rows of one fault."""
        for name, way in ways(model).items():
            found = way(rows)
            for words, divisor in (("", 1.0), (", over the usual", usual[name])):
                order = ranked(found / divisor).tolist()
                hit = order[0] in right, bool(right & set(order[:3]))
                self.hits.setdefault(name + words, []).append(hit)

    def rows(self) -> list[tuple[object, ...]]:
        """Return a line for each way."""
        return [
            (name, len(hits), *(100 * float(share) for share in np.mean(hits, axis=0)))
            for name, hits in self.hits.items()
        ]


def usual_of(model: Subspace, rows: Array) -> dict[str, Array]:
    """Return what each way says of rows in good order, on average."""
    return {name: way(rows).mean(axis=0) for name, way in ways(model).items()}


def blamed_on_plant(tally: Tally, fleet: Plant, faulty: Plant, model: Subspace, seen: list[Seen]):
    """Blame what a plant's faults set off."""
    day, hour = int(86400 / fleet.period_s), int(3600 / fleet.period_s)
    levels = [
        [reached(score(each.centered[3 * day :], model)) for each in seen]
        for score in (spe, hotelling)
    ]
    whole = len(levels[0][0]) // hour * hour
    limits = [
        np.quantile(np.max([x[:whole].reshape(-1, hour) for x in kind], axis=2), 1 - 1 / 336)
        for kind in levels
    ]
    names = [channel.name for channel in fleet.channels]
    for fault in faulty.faults:
        each = seen[fault.node]
        rows = scaled(faulty, fault.node, fault.start - 8, fault.end) - each.means[fault.start]
        rows = fill(rows, model)[0]
        scores = [spe(rows, model), hotelling(rows, model)]
        over = np.any([reached(s) > limit for s, limit in zip(scores, limits, strict=True)], axis=0)
        if not over.any():
            continue
        raised = int(over.argmax())
        anomalous = np.any([s > limit for s, limit in zip(scores, limits, strict=True)], axis=0)
        anomalous[: max(0, raised - 7)] = anomalous[raised + 43 :] = False
        right = {names.index(name) for name in fault.channels}
        tally.blame(model, rows[anomalous], usual_of(model, each.centered[3 * day :]), right)


def blamed_on_model(tally: Tally, seeds: range) -> None:
    """Blame faults of one to four deviations in rows of a known model, noise uneven."""
    for seed in seeds:
        rng = np.random.default_rng(seed)
        dim, rank = [(12, 5), (24, 6), (54, 8)][seed % 3]
        mix = rng.standard_normal((rank, dim)) * (0.6 ** np.arange(rank) * 2)[:, None]
        mix[-1] = 0
        mix[-1, 0] = 6  # one channel that has a direction of its own
        noise = np.exp(rng.normal(np.log(0.5), 0.7, dim))

        def draw(n: int, rng=rng, mix=mix, noise=noise) -> Array:
            causes = rng.standard_t(5, (n, len(mix))) / 1.29
            return product(causes, mix) + rng.standard_normal((n, len(noise))) * noise

        model = SAPCA(rank, schema=Schema.anonymous(dim)).partial_fit(draw(20000)).shown
        model = replace(model, mean=np.zeros(dim))
        sound = draw(5000)
        usual = usual_of(model, sound)
        limits = [np.quantile(score(sound, model), 0.9995) for score in (spe, hotelling)]
        for _ in range(200):
            rows, channel = draw(50), int(rng.integers(dim))
            size = rng.uniform(1, 4) * np.hypot(noise[channel], np.linalg.norm(mix[:, channel]))
            kind = rng.integers(3)
            if kind == 2:
                rows[:, channel] = size
            else:
                rows[:, channel] += size * (1.0 if kind else rng.standard_normal(50))
            anomalous = (spe(rows, model) > limits[0]) | (hotelling(rows, model) > limits[1])
            if anomalous.sum() >= 5:
                tally.blame(model, rows[anomalous], usual, {channel})


def room(quick: bool) -> list[Table]:
    """Ask about every fault."""
    nodes, days, draws = (9, 14, 2) if quick else (18, 30, 5)
    tallies: dict[str, Tally] = {}
    for name in measure.progress(PLANTS, "plants"):
        sound, tally = plant(name, nodes=nodes, days=days, faults=()), Tally()
        model, seen = streamed(sound)
        for seed in range(1, 1 + draws):
            # The same plant, with the faults of another one.
            drawn = plant(name, seed=seed, nodes=nodes, days=days, quiet_days=8).faults
            faulty = plant(name, nodes=nodes, days=days, faults=drawn)
            blamed_on_plant(tally, sound, faulty, model, seen)
        tallies[name] = tally
    tallies["known model"] = Tally()
    blamed_on_model(tallies["known model"], range(3 if quick else 9))
    return [
        Table(
            "Blame",
            {"rows of": "", "by": "", "faults": ",", "first %": ".1f", "first three %": ".1f"},
            [(name, *row) for name, tally in tallies.items() for row in tally.rows()],
        )
    ]


if __name__ == "__main__":
    command(room)
