"""What is stuck, what gaps take from scores, and what it costs to look.

On the generated plants (docs/plants.md), 30 virtual days.

- stuck: channels that were said to be stuck on plants in good order; and, with each channel of each
  node stuck once for a day and a half, how many were found and after how many rows.
- gaps: how often SPE and T2 of rows with gaps are over what 0.1 % of whole rows exceed, as they
  are and divided by `missing.shrunk`.
- cost: of 54 channels at rank 8, the least of many.
"""

import time
from collections.abc import Callable

import numpy as np

import measure
from plant_streams import BLOCK, PLANTS, Seen, streamed
from plants.plant import Plant, plant
from report import Table, command
from submerge import SAPCA, Array, Schema, Subspace, hotelling, spe
from submerge.pca.missing import shrunk
from submerge.pca.reconstruct import Reconstruction
from submerge.pca.score import Scorer
from submerge.stats.stuck import StuckDetector


def looked(rows: Array, predicted: Array, block: int) -> tuple[Array, StuckDetector]:
    """Return in which blocks each channel is stuck, (blocks, channels), and the detector."""
    stuck_detector, stuck = StuckDetector(rows.shape[1]), []
    for first in range(0, len(rows), block):
        stuck_detector.update(rows[first : first + block], predicted[first : first + block])
        stuck.append(stuck_detector.habits.stuck)
    return np.array(stuck), stuck_detector


def stuck_on_plant(fleet: Plant, seen: list[Seen]) -> tuple[object, ...]:
    """Look at a plant in good order, and at one where every channel gets stuck once."""
    day, rng = int(86400 / fleet.period_s), np.random.default_rng(0)
    block, length, false, delays, count, r2 = BLOCK, day * 3 // 2, 0, [], 0, []
    for each in seen:
        known = ~np.isnan(each.centered[:, 0])
        rows, predicted = each.rows[known].copy(), each.predicted[known]
        stuck, stuck_detector = looked(rows, predicted, block)
        false += int((stuck[1:] & ~stuck[:-1]).sum())
        r2.append(stuck_detector.r2)
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
    scorer, recall, stuck_detector = Scorer(model), Reconstruction(model), StuckDetector(54)
    predicted = rows - recall.left_out(rows - model.mean)
    works: dict[str, Callable[[slice], object]] = {
        "Scorer.scores": lambda part: scorer.scores(rows[part]),
        "left_out": lambda part: recall.left_out(rows[part]),
        "StuckDetector.update": lambda part: stuck_detector.update(rows[part], predicted[part]),
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
    """Look at every plant."""
    nodes, days = (9, 14) if quick else (18, 30)
    stuck, gaps = [], []
    for name in measure.progress(PLANTS, "plants"):
        sound = plant(name, nodes=nodes, days=days, faults=())
        model, seen = streamed(sound)
        stuck.append(stuck_on_plant(sound, seen))
        gaps += gaps_on_plant(sound, model, seen)
    return [
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
            notes=f"Looked at in blocks of {BLOCK} rows.",
        ),
        Table(
            "Rows with gaps",
            {
                "": "",
                "scores": "",
                "of all rows %": ".1f",
                "mean, of whole rows'": ".3f",
                "over the limit %": ".3f",
            },
            gaps,
            notes="Of whole rows 0.100 % are over the limit.",
        ),
        Table("Cost", {"": "", "rows": "d", "us a row": ".2f"}, cost()),
    ]


if __name__ == "__main__":
    command(room)
