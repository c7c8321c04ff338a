"""disKPCA, Figures 1 and 2: error and time against communication on small data sets.

Balcan, Liang, Song, Woodruff & Xie, *Distributed Kernel Principal Component Analysis* (KDD 2016).
Figure 1 has a polynomial kernel of degree 4, Figure 2 a Gaussian; rows are dealt to five servers by
a power law of exponent 2. The text gives no k, t or width: k is 10, t is 50, a Gaussian's gamma is
1 / (2 tr C). Of the two sets insurance (CoIL 2000) is here; MNIST's test images stand in for har.

"Residual" is our default; "the paper's" is Algorithm 1 with its own sketches: points by leverage
first, these of 512 random features or a TensorSketch of 512, times a Gaussian matrix, and 2 |Y|
random sums of the projected rows of each server. Uniform points are its baselines: disLR finds the
directions of all rows in the points' span, "batch" is kernel PCA of these alone.

A word is a number. Counted is all that each server sends and all that goes down to each of them,
until every server can project rows on the directions, as in the paper's formulas. Each server is a
process. Seconds are those of the slowest server in each round, and of the root: what a job takes
where every server has a core. Batch is the kernel matrix, and ten eigenvectors of it by Lanczos.
"""

import gzip
import multiprocessing
import sys
from collections.abc import Callable, Generator, Mapping
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

# Run as a file: the benchmarks' folder is on the path of modules that import each other.
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np
from sklearn.datasets import load_digits

import measure
from diskpca_rows import RANK, Batch, Data
from papers.frame import Curve, Figure, Panel, command
from report import Table
from submerge.features import Gaussian, Landmarks, Polynomial
from submerge.jobs.arrays import Arrays
from submerge.jobs.kind import JobAnswer
from submerge.jobs.kinds import KINDS
from submerge.jobs.kinds.kpca.answer import map_of
from submerge.jobs.kinds.kpca.job import OF_KMEANS
from submerge.jobs.local_run import ALL_POINTS, split_here
from support.kernels import power_law
from support.mnist import digits

POINTS, SERVERS, SKETCH, POWER = (50, 100, 200), 5, 50, 2.0
MORE_SERVERS, AT = (10, 20, 50), 200
OURS, PAPERS, UNIFORM, ALONE = "residual", "the paper's", "uniform + disLR", "uniform + batch"
WAYS = {
    OURS: {"sample": "residual"},
    PAPERS: {"sample": "leverage", "features": 512, "sketched_by": "gaussian", "merge": "sketch"},
    UNIFORM: {"sample": "uniform"},
}
NAMED = (
    'Points by residual are our default; "the paper\'s" is its Algorithm 1 with its own sketches.'
)

BEFORE_PROJECTION = ("count", "keys-1", "points-1")
"""Rounds until uniform points are at the root, which is all that "batch" needs."""

INSURANCE = [measure.DATA / f"insurance_{part}.txt.gz" for part in ("train", "eval")]
MNIST = measure.DATA / "mnist"
Server = Generator[tuple[Arrays, float], Any, None]


class Run(NamedTuple):
    """Words until the root has the directions, and until all servers do; seconds; the error."""

    to_root: float
    to_all: float
    seconds: float
    error: float


class Found(NamedTuple):
    """Directions (m, k) in the coordinates of points; words, seconds as `Run`; k-means' cost."""

    map_: Landmarks
    axes: measure.Array
    to_root: int
    to_all: int
    seconds: float
    cost: float = 0.0


class Counted(NamedTuple):
    """A job's answer, words by phase, of all servers both ways, and seconds by phase."""

    answer: Arrays
    words: dict[str, int]
    seconds: dict[str, float]


def server(kind: str, settings: Mapping[str, Any], rows: measure.Array, name: str) -> Server:
    """Hold rows; for what is sent down yield what goes up, and the seconds that it took."""
    job = KINDS[kind](settings, rows.shape[1])
    points = split_here(name, rows, settings)._replace(may_share=ALL_POINTS)
    memory, up, taken = None, {}, 0.0
    while True:
        down = yield up, taken
        start = measure.seconds()
        memory, up = job.contribute(memory, down, points, name)
        taken = measure.seconds() - start


class Process:
    """A server that is a process of its own."""

    def __init__(self, *of: Any) -> None:
        self._pipe, there = multiprocessing.Pipe()
        context = multiprocessing.get_context("fork")
        self._process = context.Process(target=_serve, args=(there, of), daemon=True)
        self._process.start()

    def send(self, down: Any) -> tuple[Arrays, float]:
        """Return what the server answers, and its seconds; None starts it, as a generator."""
        self._pipe.send(down)
        return self._pipe.recv()

    def close(self) -> None:
        """End the process."""
        self._process.terminate()
        self._process.join()


def _serve(pipe: Any, of: tuple[Any, ...]) -> None:
    here = server(*of)
    while True:
        pipe.send(here.send(pipe.recv()))


def counted(
    settings: Mapping[str, Any],
    parts: Mapping[str, measure.Array],
    *,
    kind: str = "kpca",
    start: Callable[..., Any] = server,
) -> Counted:
    """Run a job over servers that all talk to the root, and count what passes."""
    job = KINDS[kind](settings, next(iter(parts.values())).shape[1])
    servers = [start(kind, settings, parts[name], name) for name in sorted(parts)]
    words, seconds = dict[str, int](), dict[str, float]()
    for each in servers:
        each.send(None)
    state, down = job.first()
    while True:
        ups, taken = zip(*(each.send(down) for each in servers), strict=True)
        passed = len(parts) * _words(down.arrays) + sum(map(_words, ups))
        began, phase = measure.seconds(), down.phase
        result = job.next(state, down, job.merge(down, list(ups)))
        words[phase] = words.get(phase, 0) + passed
        seconds[phase] = seconds.get(phase, 0.0) + max(taken) + measure.seconds() - began
        if isinstance(result, JobAnswer):
            for each in servers:
                each.close()
            return Counted(result.arrays, words, seconds)
        state, down = result


def _words(arrays: Arrays) -> int:
    return sum(each.size for each in arrays.values())


def dealt(X: measure.Array, servers: int, seed: int) -> dict[str, measure.Array]:
    """Return rows by server: their numbers fall as those of the servers, squared."""
    parts = power_law(X, servers, np.random.default_rng(seed), power=POWER)
    return {f"server-{number:03}": part for number, part in enumerate(parts)}


def ways(
    each: Data,
    m: int,
    seed: int,
    servers: int,
    start: Callable[..., Any] = server,
    clusters: int = 0,
) -> dict[str, Found]:
    """Return what every way finds with m points; words and seconds are without clusters'."""
    parts, found = dealt(each.rows, servers, seed), {}
    common = {"components": RANK, "points": m, "center": False, "sketch": SKETCH, "readings": False}
    common["clusters"] = clusters
    for name, way in WAYS.items():
        own = {"columns": 2 * m} if name == PAPERS else {}
        made = counted(each.settings | common | way | own | {"seed": seed}, parts, start=start)
        map_, axes = map_of(made.answer), made.answer["axes"]
        cost = float(made.answer.get("cost", np.zeros(1))[0])
        words, seconds = (
            sum(n for phase, n in of.items() if not phase.startswith(OF_KMEANS))
            for of in (made.words, made.seconds)
        )
        found[name] = Found(map_, axes, words, words + servers * axes.size, seconds, cost)
        if name == UNIFORM:
            points, began = made.answer["points"].astype(np.float64), measure.seconds()
            coordinates = map_.lift(points)
            alone = np.linalg.eigh(coordinates.T @ coordinates)[1][:, -RANK:]
            seconds = measure.seconds() - began + sum(made.seconds[p] for p in BEFORE_PROJECTION)
            words = sum(made.words[phase] for phase in BEFORE_PROJECTION)
            down = servers * (axes.size + points.size)
            found[ALONE] = Found(map_, alone, words, words + down, seconds)
    return found


def runs(each: Data, batch: Batch, *of: Any) -> dict[str, Run]:
    """Return words, seconds and error over batch of every way, with what `ways` takes."""
    found = ways(each, *of)
    return {name: Run(*f[2:5], batch.error(f.map_, f.axes)) for name, f in found.items()}


@cache
def images(n: int) -> tuple[str, measure.Array]:
    """Return n small images and their name: MNIST's or scikit-learn's, moved if too few."""
    if MNIST.exists():
        name, square = "MNIST", digits(MNIST, *range(10)).reshape(-1, 28, 28)
        square = square.reshape(-1, 14, 2, 14, 2).mean(axis=(2, 4))
    else:
        measure.say(f"dis_kpca: no {MNIST}: scikit-learn's digits in place (set SUBMERGE_DATA)")
        name, square = "small digits", load_digits().data.reshape(-1, 8, 8) / 16
    steps = [(a, b) for a in (0, -1, 1) for b in (0, -1, 1)][: -(-n // len(square))]
    moved = np.concatenate([np.roll(square, step, (1, 2)) for step in steps])
    name += f" at {square.shape[1]} x {square.shape[1]} pixels" + (len(steps) > 1) * ", moved"
    return name, moved[np.random.default_rng(0).permutation(len(moved))[:n]].reshape(
        -1, square[0].size
    )


def of_kernel(name: str, X: measure.Array, kernel: str, gamma: float | None = None) -> Data:
    """Return rows with a kernel of the paper's, "polynomial" or "gaussian"."""
    auto = Polynomial() if kernel == "polynomial" else Gaussian()
    settings = {"kernel": kernel, "gamma": gamma or auto.auto(float(X.var(axis=0).sum()))}
    settings |= {"degree": 4} if kernel == "polynomial" else {}
    return Data(name, X, settings)


def small(quick: bool) -> dict[str, measure.Array]:
    """Return the sets of Figures 1 and 2 that are here, or what stands in for them."""
    found = {}
    if all(path.exists() for path in INSURANCE):
        lines = [x for f in INSURANCE for x in gzip.decompress(f.read_bytes()).splitlines()]
        found["insurance"] = np.array([line.split()[:85] for line in lines], float)
    else:
        measure.say(f"dis_kpca: no {INSURANCE}: left out (set SUBMERGE_DATA)")
    name, rows = images(10_000)
    return {each: X[:1000] if quick else X for each, X in (found | {name: rows}).items()}


def figure(quick: bool) -> Figure:
    """Measure error and time of every way, and what more servers save."""
    points, repeats = ((AT,), 1) if quick else (POINTS, 5)
    panels, rows, speed, merged = [], [], [], []
    tasks = [(n, X, k) for k in ("polynomial", "gaussian") for n, X in small(quick).items()]
    for name, X, kernel in measure.progress(tasks, "dis_kpca"):
        each, began = of_kernel(name, X, kernel), measure.seconds()
        batch = Batch(X, each.kernel)
        whole = measure.seconds() - began
        merged += merges(each, batch, repeats)
        found = [
            [runs(each, batch, m, s, SERVERS, Process) for s in range(repeats)] for m in points
        ]
        title = f"Figure {1 + (kernel == 'gaussian')}: {name}, {kernel}"
        for timed, label in enumerate(("error over batch", "seconds")):
            curves = [curve(way, found, label.split()[0]) for way in (*WAYS, ALONE)]
            if timed:
                ends = [min(c.x[0] for c in curves), max(c.x[-1] for c in curves)]
                curves.append(Curve("batch", ends, [whole, whole], whose="theirs"))
            panels.append(Panel(title, "words", label, curves, True, bool(timed), tabled=False))
        for m, at in zip(points, found, strict=True):
            rows += [(name, kernel, m, way, *mean_of(at, way)[1:]) for way in (*WAYS, ALONE)]
        for servers in (SERVERS,) if quick else (SERVERS, *MORE_SERVERS):
            of = found[-1] if servers == SERVERS else [runs(each, batch, AT, 0, servers, Process)]
            speed.append((name, kernel, len(X), servers, whole, *_speed(of, whole)))
    return Figure(
        "dis_kpca",
        "Balcan et al., KDD 2016: Figure 1 (polynomial kernel) and Figure 2 (Gaussian)",
        f"Error over batch kernel PCA, and seconds, against words: k = {RANK}, {SERVERS} servers,"
        f" {', '.join(map(str, points))} points. Mean of {repeats} repeats, with the least and the"
        f" most. {NAMED}",
        ("insurance: CoIL 2000, both files; " if len(tasks) > 2 else "")
        + f"{images(10_000)[0]} in place of har, which is not here",
        ("core/submerge/jobs", "core/submerge/features"),
        panels,
        [
            Table(
                f"Speed over batch, {AT} points; more than {SERVERS} servers ran once", SPEED, speed
            ),
            Table("Figures 1 and 2 as numbers", COLUMNS, rows),
            Table(f"disLR: ways to merge directions, {AT} points by residual", MERGES, merged),
        ],
        _verdict(speed),
    )


def merges(each: Data, batch: Batch, repeats: int) -> list[tuple[object, ...]]:
    """Return words of the projections, and errors, by how directions merge: "sketch" is theirs."""
    found = []
    common = {"components": RANK, "points": AT, "center": False, "readings": False}
    for merge in ("ranks", "sketch", "exact"):
        at = []
        for seed in range(repeats):
            settings = each.settings | common | {"merge": merge, "columns": 2 * AT, "seed": seed}
            made = counted(settings, dealt(each.rows, SERVERS, seed))
            error = batch.error(map_of(made.answer), made.answer["axes"])
            at.append((made.words["project"], error))
        words, error = np.mean(at, axis=0)
        found.append(
            (each.name, each.settings["kernel"], merge, words, error, max(e for _, e in at))
        )
    return found


MERGES = {"rows": "", "kernel": "", "merge": "", "words, project": ",.0f"}
MERGES |= {"error over batch": ".4f", "the worst": ".4f"}
COLUMNS = {"rows": "", "kernel": "", "points": "d", "way": "", "words, all servers": ",.0f"}
COLUMNS |= {"seconds": ".3f", "error over batch": ".4f"}
SPEED = {"rows": "", "kernel": "", "n": "d", "servers": "d", "batch, s": ".2f"}
SPEED |= {"residual, s": ".2f", "times as fast": ".0f", "error": ".4f"}
SPEED |= {"the paper's, s": ".2f", "times as fast as batch": ".1f", "its error": ".4f"}


def mean_of(at: list[dict[str, Run]], way: str) -> Run:
    """Return the mean of a way's repeats."""
    return Run(*np.mean([run[way] for run in at], axis=0).tolist())


def _speed(of: list[dict[str, Run]], whole: float) -> list[float]:
    """Return seconds, how many times as fast as batch, and the error, of both our ways."""
    means = [mean_of(of, way) for way in (OURS, PAPERS)]
    return [x for mean in means for x in (mean.seconds, whole / mean.seconds, mean.error)]


def _verdict(speed: list[tuple]) -> str:
    def span(i: int, spec: str, servers: int = SERVERS) -> str:
        of = [row[i] for row in speed if row[3] == servers]
        return f"{min(of):{spec}} to {max(of):{spec}}"

    most = speed[-1][3]
    return (
        "the paper gains 10 times in speed with five servers. By our way it is"
        f" {span(6, '.0f')} times; by the paper's, as it stands here, {span(9, '.1f')} times, since"
        " leverage takes 512 features of every row, of which a polynomial's are slow. With"
        f" {most} servers it is {span(6, '.0f', most)} times: by the power law the first server has"
        " more than half of the rows, whatever their number. The paper's error is typically less"
        f" than 3 % over batch. With {AT} points it is by our way, {span(7, '.4f')} times batch; by"
        f" the paper's it is near that, {span(10, '.4f')} times."
    )


def curve(name: str, found: list[list[dict[str, Run]]], what: str) -> Curve:
    """Return means over mean words until all servers have the directions, with bars."""
    words, values = (
        np.array([[getattr(run[name], each) for run in at] for at in found])
        for each in ("to_all", what)
    )
    of = (values.mean(axis=1), values.min(axis=1), values.max(axis=1))
    whose = "ours" if name == OURS else "theirs"
    return Curve(name, words.mean(axis=1).tolist(), *(each.tolist() for each in of), whose)


if __name__ == "__main__":
    command(figure)
