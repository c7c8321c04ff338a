"""Which channel is to blame, what is stuck, and what gaps take from scores.

On the generated plants (docs/plants.md), 30 virtual days, and on rows that a known model makes.
A fleet model every four hours of rows, about each node's own mean with a half-life of seven days;
rows are judged before they are learnt, and gaps are filled.

- blame: faults that were found by five of eight rows over a limit that no more than one hour in
  336 passes; of those rows within fifty of it, does the right channel come first, or into the
  first three? *Share* of SPE is what `contributions` says; RBC are reconstruction-based
  contributions; "usual" divides by what they are on average at that node while all is well.
- stuck: channels that were found stuck and are not, on plants in good order; and, with each
  channel of each node stuck once for a day and a half, how many were found and after how many rows.
- gaps: how often SPE and T2 of rows with gaps are over what 0.1 % of whole rows exceed, as they
  are and divided by `missing.shrunk`.
"""

import time
from collections.abc import Callable
from dataclasses import replace
from typing import NamedTuple

import measure
import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from report import Table, command

from submerge import SAPCA, Array, Schema, Subspace, contributions, hotelling, merge, spe
from submerge.missing import fill, shrunk
from submerge.reconstruct import Reconstruction
from submerge.score import Scorer
from submerge.senses import Senses
from submerge_fleet.plants import Plant, plant

BLOCK, REFRESH, HALF_LIFE_DAYS = 48, 4, 7.0
NAMES = ("room", "loop", "engines")


class Seen(NamedTuple):
    """What one node saw: its rows, what they were filled to, less its mean, and those means."""

    rows: Array
    centered: Array
    means: Array
    left_out: Array

    @property
    def predicted(self) -> Array:
        """What the others say of each channel."""
        return self.centered + self.means - self.left_out


def scaled(fleet: Plant, node: int, start: int, stop: int) -> Array:
    """Return rows of a node as they are learnt."""
    return fleet.schema.scaled(fleet.rows(node, start, stop))


def streamed(fleet: Plant) -> tuple[Subspace, list[Seen]]:
    """Let a fleet learn from start to end; return its last model, centered, and what was seen."""
    rank, dim, n = fleet.rank, len(fleet.channels), fleet.n_rows
    rows = [scaled(fleet, node, 0, n) for node in range(fleet.nodes)]
    engines = [SAPCA(rank, schema=fleet.schema) for _ in rows]
    seen = [Seen(each, *np.full((3, n, dim), np.nan)) for each in rows]
    means, weights = np.zeros((fleet.nodes, dim)), np.zeros(fleet.nodes)
    keep = 2.0 ** (-fleet.period_s / (HALF_LIFE_DAYS * 86400))
    model = None
    for first in range(0, n, BLOCK):
        part = slice(first, min(first + BLOCK, n))
        if first and first // BLOCK % REFRESH == 0:
            merged = merge(*(e.subspace for e in engines), rank=rank + 5, center="own")
            model = replace(merged.truncated(rank), mean=np.zeros(dim))
            recall = Reconstruction(model)
        for node, engine in enumerate(engines):
            block = rows[node][part]
            if model is not None:
                centered = fill(block - means[node], model)[0]
                seen[node].centered[part], seen[node].means[part] = centered, means[node]
                seen[node].left_out[part] = recall.left_out(centered)
                block = centered + means[node]
            block = block[~np.isnan(block).any(axis=1)]
            engine.partial_fit(block)
            weights[node] = weights[node] * keep ** len(block) + len(block)
            means[node] += (block - means[node]).sum(axis=0) / max(1.0, weights[node])
    return model, seen


# -- blame -----------------------------------------------------------------------


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
        "RBC of both": lambda rows: recall.contributions(rows, "both"),
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
        odd = np.any([s > limit for s, limit in zip(scores, limits, strict=True)], axis=0)
        odd[: max(0, raised - 7)] = odd[raised + 43 :] = False
        right = {names.index(name) for name in fault.channels}
        tally.blame(model, rows[odd], usual_of(model, each.centered[3 * day :]), right)


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
            return causes @ mix + rng.standard_normal((n, len(noise))) * noise

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
            odd = (spe(rows, model) > limits[0]) | (hotelling(rows, model) > limits[1])
            if odd.sum() >= 5:
                tally.blame(model, rows[odd], usual, {channel})


# -- stuck -----------------------------------------------------------------------


def looked(rows: Array, predicted: Array, block: int) -> tuple[Array, Senses]:
    """Return in which blocks each channel is stuck, (blocks, channels), and the senses."""
    senses, stuck = Senses(rows.shape[1]), []
    for first in range(0, len(rows), block):
        senses.see(rows[first : first + block], predicted[first : first + block])
        stuck.append(senses.habits.stuck)
    return np.array(stuck), senses


def stuck_on_plant(fleet: Plant, seen: list[Seen]) -> tuple[object, ...]:
    """Look at a plant in good order, and at one where every channel gets stuck once."""
    day, rng = int(86400 / fleet.period_s), np.random.default_rng(0)
    block, length, false, delays, count, r2 = BLOCK, day * 3 // 2, 0, [], 0, []
    for each in seen:
        known = ~np.isnan(each.centered[:, 0])
        rows, predicted = each.rows[known].copy(), each.predicted[known]
        stuck, senses = looked(rows, predicted, block)
        false += int((stuck[1:] & ~stuck[:-1]).sum())
        r2.append(senses.r2)
        starts = rng.integers(8 * day, len(rows) - 2 * day, rows.shape[1])
        for channel, start in enumerate(starts):
            column = rows[:, channel]
            value = column[:start][~np.isnan(column[:start])][-1]
            span = column[start : start + length]
            span[~np.isnan(span)] = value
        stuck, _ = looked(rows, predicted, block)
        for channel, start in enumerate(starts):
            after = stuck[start // block : (start + length) // block, channel]
            count += 1
            if after.any():
                delays.append((start // block + int(after.argmax()) + 1) * block - start)
    return (
        fleet.name,
        len(seen) * fleet.n_rows / day,
        false,
        count,
        100 * len(delays) / count,
        float(np.median(delays)),
        float(np.quantile(delays, 0.9)),
        100 * float((np.array(r2) >= 0.5).mean()),
    )


# -- gaps and cost ---------------------------------------------------------------


def gaps_on_plant(fleet: Plant, model: Subspace, seen: list[Seen]) -> list[tuple[object, ...]]:
    """Hold scores of rows with gaps against those of whole rows."""
    day = int(86400 / fleet.period_s)
    rows = np.concatenate([each.centered[3 * day :] for each in seen])
    gaps = np.isnan(np.concatenate([each.rows[3 * day :] for each in seen]))
    holed, found = gaps.any(axis=1), []
    patterns, which = np.unique(gaps[holed], axis=0, return_inverse=True)
    shares = np.array([shrunk(~pattern, model) for pattern in patterns])[which.ravel()]
    for kind, score in enumerate((spe, hotelling)):
        scores = score(rows, model)
        limit = np.quantile(scores[~holed], 0.999)
        mean = scores[~holed].mean()
        for words, factor in (("as they are", 1.0), ("divided", shares[:, kind])):
            low = scores[holed] / factor
            found.append(
                (
                    f"{fleet.name}, {('SPE', 'T2')[kind]}",
                    words,
                    100 * float(holed.mean()),
                    float(low.mean() / mean),
                    100 * float((low > limit).mean()),
                )
            )
    return found


def cost() -> list[tuple[object, ...]]:
    """Time blocks of 50 rows of 54 channels at rank 8, and single rows; the least of many."""
    rng = np.random.default_rng(0)
    rows = rng.standard_normal((20_000, 8)) @ rng.standard_normal((8, 54))
    rows = np.round(rows + 0.3 * rng.standard_normal(rows.shape), 2)
    model = SAPCA(8, schema=Schema.anonymous(54)).partial_fit(rows).shown
    scorer, recall, senses = Scorer(model), Reconstruction(model), Senses(54)
    predicted = rows - recall.left_out(rows - model.mean)
    works: dict[str, Callable[[slice], object]] = {
        "Scorer.scores": lambda part: scorer.scores(rows[part]),
        "left_out": lambda part: recall.left_out(rows[part]),
        "Senses.see": lambda part: senses.see(rows[part], predicted[part]),
    }
    found = []
    for size in (1, 50, 128):
        parts = [slice(i, i + size) for i in range(0, 100 * size, size)]
        for name, work in works.items():
            least = np.inf
            for part in parts * 20:
                start = time.perf_counter()
                work(part)
                least = min(least, time.perf_counter() - start)
            found.append((name, size, 1e6 * least / size))
    return found


def room(quick: bool) -> list[Table]:
    """Run all of it."""
    nodes, days, draws = (9, 14, 2) if quick else (18, 30, 5)
    tallies, stuck, gaps = {}, [], []
    for name in measure.progress(NAMES, "plants"):
        sound = plant(name, nodes=nodes, days=days, faults=())
        model, seen = streamed(sound)
        tally = tallies.setdefault(name, Tally())
        for seed in range(1, 1 + draws):
            # The same plant, with the faults of another one.
            drawn = plant(name, seed=seed, nodes=nodes, days=days, quiet_days=8).faults
            faulty = plant(name, nodes=nodes, days=days, faults=drawn)
            blamed_on_plant(tally, sound, faulty, model, seen)
        stuck.append(stuck_on_plant(sound, seen))
        gaps += gaps_on_plant(sound, model, seen)
    blamed_on_model(tallies.setdefault("known model", Tally()), range(3 if quick else 9))
    return [
        Table(
            "Blame",
            {"rows of": "", "by": "", "faults": ",", "first %": ".1f", "first three %": ".1f"},
            [(name, *row) for name, tally in tallies.items() for row in tally.rows()],
        ),
        Table(
            "Stuck",
            {
                "plant": "",
                "node-days": ",.0f",
                "false": "d",
                "stuck": ",",
                "found %": ".1f",
                "median rows": ".0f",
                "90 % of them": ".0f",
                "channels with R2 >= .5, %": ".0f",
            },
            stuck,
            notes="Looked at in blocks of 48 rows.",
        ),
        Table(
            "Rows with gaps",
            {"": "", "scores": "", "of all rows %": ".1f", "mean, of whole rows'": ".3f",
             "over the limit %": ".3f"},
            gaps,
            notes="Of whole rows 0.100 % are over the limit.",
        ),
        Table("Cost", {"": "", "rows": "d", "us a row": ".2f"}, cost()),
    ]  # fmt: skip


if __name__ == "__main__":
    command(room)
