"""Bounded influence: what one node of forty does to a model, with bounds, without, and robust.

40 nodes of one row rate, d = 30 columns and r = 4 directions over noise of 0.04 each, as in
benchmarks/robust.py. "Gaps" has the variances 4, 3, 2, 1, "flat" 1.3, 1.2, 1.1, 1. Angles are the
largest principal angle between the model and that of the other 39, in degrees; shifts are those of
the mean, in standard deviations of a reading. All are for the worst of the seeds.
"""

import itertools
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

import measure
from page import page
from report import Table
from submerge import Schema, Subspace
from submerge.aggregator.rows import influence as rows_influence
from submerge.aggregator.rows.influence import ChildPlacement, ChildSummary, InfluenceRule
from submerge.pca.factor import Precision
from submerge.pca.score import spe
from submerge.protocol.summaries import Subspaces
from submerge.robust.influence import Loudness

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support import influence, liars

NODES = 40
SPECTRA = {"gaps": liars.VARIANCES, "flat": np.array([1.3, 1.2, 1.1, 1.0])}
WAYS = {
    "plain, no bounds": {"bounds": False},
    "plain": {},
    "robust": {"robust": True},
    "robust, no bounds": {"robust": True, "bounds": False},
}
AGES = {"all ages alike": (1000, 1000), "ages 1 to 1000": (1, 1000)}


def fleet(seed: int, spectrum: str, ages: tuple[int, int]) -> tuple[liars.Fleet, dict[str, float]]:
    """Return summaries and ages; the age is that of the readings, at one rate."""
    least, most = ages

    def rows(rng: np.random.Generator) -> int:
        return round(10 * np.exp(rng.uniform(np.log(least), np.log(most))))

    made = liars.fleet(seed, rows, nodes=NODES, variances=SPECTRA[spectrum])
    days = {name: influence.DAY * part.weight / 10 for name, part in made.parts.items()}
    return made, days


def along(part: Subspace, u: np.ndarray, times: float, usual: float) -> Subspace:
    """Return a part with so many times the usual energy, all of it along one direction."""
    total = times * usual * part.weight
    basis, sigma = u[:, None].astype(np.float32), np.array([total**0.5])
    return replace(part, basis=basis, sigma=sigma, energy=total, spectral_bound=0.0)


def shifted(part: Subspace, u: np.ndarray, times: float, usual: float) -> Subspace:
    """Return a part with so many times the usual energy, all of it in its mean."""
    nothing = np.empty((len(u), 0), np.float32), np.empty(0)
    mean = part.mean + (times * usual) ** 0.5 * u
    return Subspace(part.schema, *nothing, mean, part.weight, 0.0, 0.0)


def energies(quick: bool) -> list[Table]:
    """Let one node have 1, 3 and 30 times the energy of the others, where it does most harm."""
    tables = []
    for told, ages in AGES.items():
        rows = []
        for spectrum, times in itertools.product(SPECTRA, (1.0, 3.0, 30.0)):
            worst = {way: np.zeros(2) for way in WAYS}
            for seed in range(1 if quick else 2):
                made, days = fleet(seed, spectrum, ages)
                liar = sorted(days, key=days.__getitem__)[NODES // 2]
                others = {name: p for name, p in made.parts.items() if name != liar}
                # The median of all, where this one is above it.
                energies = [part.energy / part.weight for part in others.values()]
                usual = float(np.median([*energies, np.inf]))
                before, _ = influence.placed(others, days, bounds=False)
                for degrees in (*range(5, 50, 5), 60, 75, 90):
                    u = liars.turned(made, degrees, 1)[:, -1]
                    for make in (along, shifted):
                        lie = make(made.parts[liar], u, times, usual)
                        for way, how in WAYS.items():
                            after, _ = influence.placed(others | {liar: lie}, days, **how)
                            moved = influence.displaced(before, after)
                            worst[way] = np.maximum(worst[way], moved)
            rows.append((spectrum, times, *(float(x) for pair in worst.values() for x in pair)))
        columns = {"spectrum": "", "energy": ".0f"}
        for way in WAYS:
            columns |= {f"{way}: degrees": ".2f", f"{way}: shift": ".3f"}
        tables.append(
            Table(
                f"One node of the median age, {told}: all of its energy where it does most harm",
                columns,
                rows,
                "`energy` is in units of the median, per sample. All of it is along one direction,"
                " or in the mean; that is turned by 5 to 90 degrees from the weakest direction of"
                " the fleet, and the worst is shown. With bounds, 30 times count as"
                " 3 do; the median that bounds go by has the means of young nodes in it, too.",
            )
        )
    return tables


HIDDEN = SPECTRA | {"weak last": np.array([4, 3, 2, 0.2]), "steep": np.array([8, 2, 0.5, 0.125])}
SIZES = (6, 10, 20)


def lies(
    made: liars.Fleet, part: Subspace, variances: np.ndarray, times: float
) -> Iterator[Subspace]:
    """Yield lies of so many times the usual energy: all of it along a turned direction, or some."""
    noise, rank = liars.NOISE**2, liars.RANK + liars.SPARES
    usual = float(variances.sum()) + noise * liars.DIM
    for degrees in (90, 45, 14):
        u = liars.turned(made, degrees, 1)[:, -1]
        yield along(part, u, times, usual)
        for extra in (*(noise * np.array([2, 4, 8, 20])), 0.3 * usual, 0.9 * usual, 2 * usual):
            # What is too much is taken from the strongest direction.
            taken = max(0.0, extra - (times - 1) * usual)
            if taken < variances[0]:
                B = np.column_stack([made.true, u])
                own = np.append(variances - taken * np.eye(len(variances))[0], extra)
                values, vectors = np.linalg.eigh(B * own @ B.T + noise * np.eye(liars.DIM))
                sigma = np.sqrt(values[::-1][:rank] * part.weight)
                basis = vectors[:, ::-1][:, :rank].astype(np.float32)
                energy = float(values.sum()) * part.weight
                yield replace(part, basis=basis, sigma=sigma, energy=energy, spectral_bound=0.0)


def found(model: Subspace, made: liars.Fleet, variances: np.ndarray, seed: int) -> np.ndarray:
    """Return which share of faults another node finds, (2, sizes): by distance, and by SPE."""
    rng, precision = np.random.default_rng(seed), Precision.of(model)
    shown = model.truncated(liars.RANK)
    rows = rng.standard_normal((5000, liars.RANK)) * np.sqrt(variances) @ made.true.T
    rows += liars.NOISE * rng.standard_normal(rows.shape)
    ways = (lambda X: precision.measure(X - model.mean)[1]), (lambda X: spe(X, shown))
    faults = [rows[:500] + size * liars.NOISE * made.off[:, 0] for size in SIZES]
    return np.array(
        [[(way(each) > np.quantile(way(rows), 0.999)).mean() for each in faults] for way in ways]
    )


def hidden(quick: bool) -> Table:
    """Let liars hide faults along a direction of their choice, and look for these elsewhere."""
    rows = []
    cases = list(itertools.product(HIDDEN, (1, 3), (1.0, 2.99)))
    for spectrum, count, times in measure.progress(cases, "hidden"):
        worst, degrees = np.ones((3, 2, len(SIZES))), np.zeros(3)
        for seed in range(1 if quick else 3):
            variances = HIDDEN[spectrum]
            made = liars.fleet(seed, lambda _: 1000, nodes=NODES, variances=variances)
            days, names = dict.fromkeys(made.parts, 100 * influence.DAY), sorted(made.parts)[:count]
            honest, _ = influence.placed(made.parts, days)
            worst[0] = np.minimum(worst[0], found(honest, made, variances, seed))
            told = (lies(made, made.parts[name], variances, times) for name in names)
            for lie in zip(*told, strict=True):
                parts = made.parts | dict(zip(names, lie, strict=True))
                without = Loudness(np.zeros(NODES), np.ones(NODES), liars.DIM)
                with mock.patch.object(rows_influence, "loudness", return_value=without):
                    before, _ = influence.placed(parts, days)
                for i, model in ((1, before), (2, influence.placed(parts, days)[0])):
                    worst[i] = np.minimum(worst[i], found(model, made, variances, seed))
                    degrees[i] = max(degrees[i], influence.displaced(honest, model)[0])
        for size, of_size in zip(SIZES, np.moveaxis(worst, 2, 0), strict=True):
            rows.append((spectrum, count, times, size, *of_size.T.ravel(), *degrees[1:]))
    columns = {"spectrum": "", "liars": "d", "energy": ".2f", "deviations": "d"}
    for way in ("distance", "SPE"):
        columns |= {f"{way}: {when}": ".2f" for when in ("honest", "before", "now")}
    columns |= {"degrees before": ".1f", "degrees now": ".1f"}
    return Table(
        "What liars of 40 hide: share of faults that other nodes find",
        columns,
        rows,
        "Faults of so many standard deviations of noise, along the direction that liars choose;"
        " limits that one row in 1,000 exceeds. The worst of 24 lies, within what a node may have"
        " of energy: all of it along a direction turned by 14, 45 or 90 degrees from the weakest,"
        " or an honest scatter with some more there. *Before*: without the bound on variances.",
    )


def attacks(quick: bool) -> Table:
    """Let one node lie in every way of benchmarks/robust.py."""
    rows = []
    every = liars.NAMED | liars.OTHERS | liars.CLEVER
    for spectrum, how in measure.progress(list(itertools.product(SPECTRA, every)), "attacks"):
        worst = {way: np.zeros(2) for way in WAYS}
        for seed in range(1 if quick else 2):
            made, days = fleet(seed, spectrum, (100, 100))
            parts, who = made.lying(every[how], 1, seed)
            others = {name: part for name, part in parts.items() if name not in who}
            before, _ = influence.placed(others, days, bounds=False)
            for way, settings in WAYS.items():
                after, _ = influence.placed(parts, days, **settings)
                worst[way] = np.maximum(worst[way], influence.displaced(before, after))
        rows.append((spectrum, how, *(float(x) for pair in worst.values() for x in pair)))
    columns = {"spectrum": "", "attack": ""}
    for way in WAYS:
        columns |= {f"{way}: degrees": ".2f", f"{way}: shift": ".3f"}
    worst_robust = max(max(row[6], row[8]) for row in rows)
    return Table(
        "One liar of 40, all ages alike",
        columns,
        rows,
        f"Asked of robust groups: at most 5 degrees (worst: {worst_robust:.2f}) and half a"
        f" deviation (worst: {max(max(row[7], row[9]) for row in rows):.3f}).",
    )


def honest(quick: bool) -> Table:
    """Measure how often an honest fleet is touched."""
    rows = []
    for told, louder, jitter in (
        ("alike", 0.0, 0.0),
        ("energies that differ: log sd 0.2", 0.1, 0.0),
        ("energies that differ: log sd 1.4", 0.7, 0.0),
        ("row rates that differ by 10 %", 0.0, 0.1),
        ("row rates that differ by 30 %", 0.0, 0.3),
    ):
        fleets, touched, least, worst = 20 if quick else 100, 0, 1.0, 0.0
        bounded = 0
        for seed in range(fleets):
            rng = np.random.default_rng(seed)
            made = liars.fleet(
                seed,
                lambda rng: round(10 * np.exp(rng.uniform(0, np.log(1000)))),
                nodes=NODES,
                dim=10,
                louder=louder,
            )
            rates = {name: 10 * (1 + rng.uniform(-jitter, jitter)) for name in made.parts}
            days = {n: influence.DAY * p.weight / rates[n] for n, p in made.parts.items()}
            plain, _ = influence.placed(made.parts, days, bounds=False)
            model, placement = influence.placed(made.parts, days)
            touched += not influence.same_bytes(plain, model)
            bounded += len(placement.bounds)
            least = min([least, *(bound.factor for bound in placement.bounds.values())])
            worst = max(worst, influence.displaced(plain, model)[0])
        rows.append((told, fleets, touched, bounded / fleets, least, worst))
    return Table(
        "Honest fleets, ages 1 to 1000",
        {
            "fleet": "",
            "fleets": "d",
            "touched": "d",
            "nodes bounded, mean": ".2f",
            "smallest factor": ".2f",
            "degrees to the plain model": ".2f",
        },
        rows,
        "An untouched fleet has the same bytes with bounds and without.",
    )


def times(quick: bool) -> Table:
    """Measure what bounds add to a model."""
    rows = []
    for n, dim in ((1000, 48), (1000, 512)):
        made = liars.fleet(0, lambda _: 100, nodes=50, dim=dim)
        some = list(made.parts.values())
        parts = {f"node-{i}": some[i % len(some)] for i in range(n)}
        schema, summaries = Schema.anonymous(dim), Subspaces(liars.RANK, oversample=liars.SPARES)
        found = []
        for rule in (None, InfluenceRule()):
            tree = summaries.tree(schema)
            placement = ChildPlacement(schema, summaries, tree, rule=rule)
            for name, part in parts.items():
                placement.put(name, ChildSummary(part, client=True))
            placement.settle(lambda _: 10 * influence.DAY, (0.0, 0.0))
            tree.root()
            clock = itertools.count(1)

            def one_changed(some=some, placement=placement, tree=tree, clock=clock) -> float:
                part = some[next(clock) % len(some)]
                placement.put("node-7", ChildSummary(part, client=True))
                start = time.process_time()
                placement.settle(lambda _: 10 * influence.DAY, (float(next(clock)), 0.0))
                tree.root()
                return time.process_time() - start

            def aged(placement=placement, tree=tree, clock=clock) -> float:
                start = time.process_time()
                placement.settle(lambda _: 10 * influence.DAY, (float(next(clock)), 0.0))
                tree.root()
                return time.process_time() - start

            budget = 0.2 if quick else 2.0
            found += [measure.repeated(run, budget_s=budget).least for run in (one_changed, aged)]
        rows.append((n, dim, *(1e3 * each for each in found)))
    return Table(
        "Time of a model, ms",
        {
            "nodes": "d",
            "d": "d",
            "no bounds: one report": ".2f",
            "no bounds: no report": ".2f",
            "bounds: one report": ".2f",
            "bounds: no report": ".2f",
        },
        rows,
        "Processor time, the shortest of some runs, one thread. After one report all are compared;"
        " without a report only their ages have changed.",
    )


def room(quick: bool) -> list[Table]:
    """Measure all."""
    return [hidden(quick), *energies(quick), attacks(quick), honest(quick), times(quick)]


if __name__ == "__main__":
    page(room)
