"""Real servers: which labelled incidents alarms find, how often alarms are false, and the blame.

Parts of two public sets (InterFusion's application servers, and the Server Machine Dataset), with
incidents and the channels to blame for them. Limits follow from the training rows alone, everything
is at its defaults, and nothing is adjusted to the labels: an incident is found if an alarm *begins*
in one of its rows, and an alarm is false if it is open in no labelled row. *False* is a machine and
week of test rows, *in alarm* the share of rows without a label in which an alarm is open. *Blame*:
of the alarms that begin in an incident, those whose first channel is one of its channels. *Beyond*:
of the false alarms, those during which a channel was above or below all of the training rows.

Ways: *fleet* judges each machine by the model of all, about the machine's own mean; *own* is a fit
of each machine's file alone; *rule* is `fit --node-by file`, the default. *Clients* replay both
parts from nothing, an hour's rows at a time, below a real root in virtual time, and go on learning
on the test rows; of their alarms those count that are open in one of these.

Promised: the same on the histories alone, which are not labelled: all machines are fitted by the
first three fifths of their training rows, and the alarms on the other two fifths are counted, of
two rates that are promised; *about* is the 90 % interval of a Poisson law.

By rows: a machine with so many training rows (the mean of five places in its history) joins a fleet
of the others, which have all theirs. A client's own objects learn them, one by one; then mean and
scatter are frozen, and all test rows are scored. *Own* and *fleet* are the rule with the fleet's
scatter worth no rows and infinitely many; *alone* is `SubspaceDetector` on the same rows, *fit* the
rule as `submerge.Model` fits all machines. Figures are areas under the ROC curve, means over
machines; *lost* is what the rule loses to the better of own and fleet.

Beside others: each learns the training rows of one machine, in standard deviations of its channels,
and scores its test rows. *EWMA* is the moving average of the scores, of weight 0.1, for all alike.
KNN has 5,000 training rows, drawn by chance; PyOD's PCA keeps 99.9 % of the variance, since it
divides by that of the last direction. AP is average precision. Means over machines.
"""

import importlib
import json
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np
from click.testing import CliRunner
from scipy.stats import gamma
from sklearn.metrics import average_precision_score, roc_auc_score

import blas  # noqa: F401 (before numpy: it sets one thread)
import measure
import submerge
from detectors import installed
from fleet_in_time import Fleet
from page import page
from real_plants.case import Array
from report import Table
from submerge import Channel, Schema
from submerge.client.monitor import NodeMonitor
from submerge.client.monitor_state import MonitorState
from submerge.history.detection import ByModel, RowJudge
from submerge.history.knowledge import follow
from submerge.judge.prepare import RowTime, prepare
from submerge.protocol.machine import Now
from submerge.protocol.settings import AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.sklearn import SubspaceDetector
from submerge.stats.smoothing import ewma
from submerge_files.detect.command import ALARMED
from submerge_files.detect.command import command as detect
from submerge_files.fit.command import command as fit
from submerge_files.score.model import Normal, of_state

FOLDER = measure.DATA / "servers"
SETS = {"servers": ("omi-*.npz", 300), "machines": ("machine-*.npz", 60)}
"""Files, and seconds from row to row."""

EPOCH, WEEK_S = 1_700_000_000, 604800.0
AGES, PLACES = (50, 200, 1000), (0.0, 0.25, 0.5, 0.75, 1.0)
WITHIN_AUC, WITHIN_AP = 0.005, 0.02
"""What may be lost to the better of own and fleet, and to the best of the other methods."""

OTHERS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "PyOD KNN": ("pyod.models.knn", "KNN", {}),
    "PyOD ECOD": ("pyod.models.ecod", "ECOD", {}),
    "PyOD IForest": ("pyod.models.iforest", "IForest", {"random_state": 0}),
    "PyOD PCA": ("pyod.models.pca", "PCA", {"n_components": 0.999}),
    "Mahalanobis": ("sklearn.covariance", "EmpiricalCovariance", {}),
    "Mahalanobis (Ledoit-Wolf)": ("sklearn.covariance", "LedoitWolf", {}),
    "factor analysis, 9 factors": ("sklearn.decomposition", "FactorAnalysis", {"n_components": 9}),
}
SCORES = ("decision_function", "mahalanobis", "score_samples")
"""The methods by which they score rows; the last is high for usual ones."""

RULE, ALONE = "submerge, the rule", "submerge, SubspaceDetector"
FIGURES = ("AUC", "AP", "EWMA AUC", "EWMA AP")


@dataclass(frozen=True, eq=False)
class Server:
    """A machine: rows (n, channels), which of the test rows are of incidents, and these.

    incidents : first row and last + 1 of each, and the numbers of its channels, from 1
    """

    name: str
    period_s: int
    train: Array
    test: Array
    label: Array
    incidents: list[tuple[int, int, set[int]]]


def read(path: Path, period_s: int) -> Server:
    held, lines = np.load(path), path.with_suffix(".blame.txt").read_text().split()
    blame = {int(line.split("-")[0]): line.split(":")[1].split(",") for line in lines}
    label = held["label"].astype(bool)
    edges = np.flatnonzero(np.diff(label, prepend=False, append=False)).reshape(-1, 2).tolist()
    incidents = [(first, last, set(map(int, blame[first]))) for first, last in edges]
    rows = [held[part].astype(np.float64) for part in ("train", "test")]
    return Server(path.stem, period_s, *rows, label, incidents)


def written(server: Server, folder: Path) -> list[str]:
    """Write both parts as CSV files with times; return their paths."""
    paths, first = [], 0
    for part, rows in (("train", server.train), ("test", server.test)):
        path = folder / part / f"{server.name}.csv"
        path.parent.mkdir(exist_ok=True)
        times = EPOCH + server.period_s * (first + np.arange(len(rows)))
        head = ",".join(["time", *(f"c{i + 1}" for i in range(rows.shape[1]))])
        table, forms = np.column_stack([times, rows]), ["%d", *["%.9g"] * rows.shape[1]]
        np.savetxt(path, table, forms, delimiter=",", header=head, comments="")
        paths, first = [*paths, str(path)], len(rows)
    return paths


def run(command: click.Command, *arguments: str) -> str:
    """Run a command of the product; return what it prints."""
    result = CliRunner().invoke(command, arguments)
    if result.exit_code not in (0, ALARMED):
        raise RuntimeError(f"{command.name}: {result.output}") from result.exception
    return result.stdout


def alarms_of(files: Sequence[list[str]], *asked: str) -> list[dict[str, Any]]:
    """Fit training files, and return the alarms on the test files."""
    train, test = zip(*files, strict=True)
    with tempfile.TemporaryDirectory() as folder:
        by, model = ("--node-by", "file") if len(files) > 1 else (), f"{folder}/model"
        run(fit, *train, *by, "-o", model)
        text = run(detect, *test, *by, "--model", model, "--json", *asked)
    return [json.loads(line) for line in text.splitlines()]


class Replayed:
    """Both parts of the rows of some machines, as `Fleet` reads those of a plant."""

    def __init__(self, servers: Sequence[Server]) -> None:
        self.nodes, self.period_s = len(servers), servers[0].period_s
        channels = (Channel(f"c{i + 1}") for i in range(servers[0].test.shape[1]))
        self.schema = Schema(tuple(channels), center="own")
        self._parts = [np.concatenate([each.train, each.test]) for each in servers]
        self.n_rows = max(map(len, self._parts))

    def rows(self, node: int, start: int, stop: int) -> Array:
        """Return rows of a machine; one that has fewer than the others has none at last."""
        return self._parts[node][start:stop]


def through_clients(servers: Sequence[Server]) -> list[dict[str, Any]]:
    """Return the alarms of real clients on the test rows, as `detect` prints them."""
    fleet, found = Fleet(Replayed(servers), AlarmSettings(), learns_scaling=True), []
    for _ in fleet.run(label="clients"):
        pass
    fleet.ends()
    for each, member in zip(servers, fleet.members, strict=True):
        before = len(each.train)
        for alarm in member.by_limits()[0]:
            begun = fleet.row_at(alarm.began) - before
            ended = fleet.row_at(alarm.ended) - before if alarm.ended else len(each.test)
            if ended > 0:
                rows = {"began": {"row": begun + 1}, "ended": {"row": ended + 1}}
                why = {"cause": alarm.cause, "first": dict(alarm.first)}
                found.append({"machine": each.name} | rows | why)
    return found


def counted(server: Server, alarms: Sequence[dict[str, Any]]) -> Counter[str]:
    """Count what the alarms of a machine are, by the labels."""
    n, test, found = len(server.test), server.test, Counter[str](of=len(server.incidents))
    beyond = (test > server.train.max(axis=0)) | (test < server.train.min(axis=0))
    is_open, begun = np.zeros(n, bool), set[int]()
    for alarm in alarms:
        begin, end = alarm["began"]["row"] - 1, (alarm["ended"] or {"row": n + 1})["row"] - 1
        is_open[begin:end] = True
        found[f"by {alarm['cause']}"] += 1
        is_false = not server.label[begin:end].any()
        found["false"] += is_false
        found["beyond"] += is_false and beyond[begin:end].any()
        for first, last, blamed in server.incidents:
            if first <= begin < last:
                begun.add(first)
                found["named"] += 1
                found["right"] += int(next(iter(alarm["first"]), "c0")[1:]) in blamed
    sound = ~server.label
    found += Counter(open=int(is_open[sound].sum()), sound=int(sound.sum()))
    return found + Counter(found=len(begun), seconds=n * server.period_s)


def row_of(counts: Counter[str]) -> tuple[object, ...]:
    """Return the figures of a table's row."""
    shares = counts["found"] / counts["of"], counts["false"] / counts["seconds"] * WEEK_S
    return (
        *(f"{counts['found']} of {counts['of']}", *shares, counts["open"] / counts["sound"]),
        *(f"{counts['right']} of {counts['named']}", f"{counts['beyond']} of {counts['false']}"),
        ", ".join(f"{n} {each}" for each, n in sorted(counts.items()) if each.startswith("by ")),
    )


def alarmed(
    name: str, servers: Sequence[Server], files: Mapping[str, list[str]]
) -> Iterator[tuple[object, ...]]:
    """Yield the rows of the table of alarms: each way, and the rule by machine."""
    measure.say(f"{name}: alarms by the fleet's model, by own models, and by the rule")
    places = [f"submerge.{module}.WIDEST" for module in ("history.folds", "client.monitor")]
    with mock.patch(places[0], 0), mock.patch(places[1], 0):  # as wide groups are judged
        ways = {"fleet": alarms_of([*files.values()])}
    own = {each: alarms_of([pair]) for each, pair in files.items()}
    ways["own"] = [alarm | {"machine": each} for each, found in own.items() for alarm in found]
    ways["clients"] = through_clients(servers)
    ways["rule"] = alarms_of([*files.values()])
    for way, alarms in ways.items():
        by = [counted(s, [each for each in alarms if each["machine"] == s.name]) for s in servers]
        yield name, way, *row_of(sum(by, Counter()))
    for server, counts in zip(servers, by, strict=True):
        yield server.name, "rule", *row_of(counts)


def promised(name: str, servers: Sequence[Server]) -> Iterator[tuple[object, ...]]:
    """Yield how many alarms come on later rows of the histories, for each rate and machine."""
    parts = [(each, *np.split(each.train, [3 * len(each.train) // 5])) for each in servers]
    halves = [
        replace(each, train=train, test=test, label=np.zeros(len(test), bool), incidents=[])
        for each, train, test in parts
    ]
    with tempfile.TemporaryDirectory() as folder:
        files = [written(each, Path(folder)) for each in halves]
        for rate, span_s in ("day", WEEK_S / 7), ("week", WEEK_S):
            alarms, many = alarms_of(files, "--at-most", f"1 false per {rate}"), Counter[str]()
            for each in halves:
                one = counted(each, [a for a in alarms if a["machine"] == each.name])
                yield each.name, rate, *_kept(one, each.period_s / span_s)
                many += one
            yield name, rate, *_kept(many, halves[0].period_s / span_s)


def _kept(found: Counter[str], each: float) -> tuple[object, ...]:
    """Return alarms, those promised, their ratio with its interval, and the share in alarm."""
    n, asked = found["false"], found["sound"] * each
    low, high = (gamma.ppf(q, a) / asked if a else 0.0 for q, a in ((0.05, n), (0.95, n + 1)))
    return n, asked, n / asked, f"{low:.2f} to {high:.2f}", found["open"] / found["sound"]


def joined(server: Server, normal: Normal, rows: Array) -> MonitorState:
    """Return what a client keeps that has learnt rows below a root with this model."""
    model, schema, many = normal.learnt.model, normal.schema, max(1, len(rows) // 1000)
    settings = ClientSettings(server.name, "servers", "root", fills_gaps=True)
    monitor = NodeMonitor(settings, schema, Subspaces(model.rank))
    fill, time = partial(monitor.filled, model=model), RowTime(server.period_s)
    for first in range(0, len(rows), many):
        block = prepare(rows[first : first + many], schema, fill=fill, time=time)
        monitor.judge(block, model, Now(first * server.period_s, first * server.period_s))
        follow(monitor, block, None)
    return monitor.kept


def distances(server: Server, normal: Normal, state: MonitorState) -> Array:
    """Return the distances of all test rows, by a mean and a scatter that stay as they are."""
    judge = RowJudge(ByModel(of_state(normal, state)))
    parts = np.array_split(server.test, 24)
    return np.concatenate([judge.judge(judge.prepare(part)).scores.distance for part in parts])


def areas(server: Server, normal: Normal, state: MonitorState, rows: Array) -> Array:
    """Return areas of own, fleet and rule, of these by EWMA, and of a detector of rows alone."""
    scores, own = [], state.scatter
    for times in (1e12, 1e-12, 1.0):  # as many rows as it is of: beside 1e12, the fleet is none
        scatter = replace(own, sums=times * own.sums, weight=times * own.weight)
        scores.append(distances(server, normal, replace(state, scatter=scatter)))
    scores += [*map(ewma, scores), -SubspaceDetector().fit(rows).score_samples(server.test)]
    return np.array([roc_auc_score(server.label, each) for each in scores])


def aged(
    name: str, servers: Sequence[Server], normals: Mapping[str, Normal], ages: Sequence[int]
) -> Iterator[tuple[tuple[object, ...], list[str]]]:
    """Yield a table's rows, with what is missed; `normals` are of all but one, and ("") of all."""
    for age in (*ages, "all", "fit"):
        found = []
        for each in measure.progress(servers, f"{name}: {age} rows"):
            normal = normals["" if age == "fit" else each.name]
            n = age if isinstance(age, int) else len(each.train)
            firsts = {round(place * (len(each.train) - n)) for place in PLACES}
            some = [each.train[first : first + n] for first in sorted(firsts)]
            kept = [normal.states.get(each.name) or joined(each, normal, rows) for rows in some]
            of = [areas(each, normal, *state) for state in zip(kept, some, strict=True)]
            found.append(np.mean(of, axis=0))
        lost = [each[:2].max() - each[2] for each in found]
        named = zip(servers, lost, strict=True)
        missed = [f"{each.name} at {age} ({x:.3f})" for each, x in named if x > WITHIN_AUC]
        *first, alone = np.mean(found, axis=0).tolist()
        both = ((*some, max(some[:2]) - some[2]) for some in (first[:3], first[3:]))
        yield (name, str(age), *chain(*both), alone), missed


def scores_of(server: Server, method: str, most: int) -> Array:
    """Return another method's scores of the test rows: it learns the training rows."""
    module, name, arguments = OTHERS[method]
    mean, spread = server.train.mean(axis=0), server.train.std(axis=0)
    spread[spread == 0] = 1.0
    train, test = ((rows - mean) / spread for rows in (server.train, server.test))
    if "KNN" in method:
        train = np.random.default_rng(0).permutation(train)[:most]
    made = getattr(importlib.import_module(module), name)(**arguments).fit(train)
    score = next(getattr(made, each) for each in SCORES if hasattr(made, each))
    return -score(test) if score.__name__ == SCORES[-1] else score(test)


def beside(
    name: str, servers: Sequence[Server], whole: Normal, most: int
) -> Iterator[tuple[str, list[float]]]:
    """Yield each method with the means of its `FIGURES`."""
    methods: dict[str, Callable[[Server], Array]] = {
        RULE: lambda each: distances(each, whole, whole.states[each.name]),
        ALONE: lambda each: -SubspaceDetector().fit(each.train).score_samples(each.test),
    }
    for method, (module, *_) in OTHERS.items():
        if installed(module):
            methods[method] = partial(scores_of, method=method, most=most)
    by = roc_auc_score, average_precision_score
    for method, score in measure.progress(methods.items(), f"{name}: other methods"):
        every = [(each.label, np.nan_to_num(score(each))) for each in servers]
        both = [every, [(label, ewma(scores)) for label, scores in every]]
        yield method, [float(np.mean([f(*each) for each in some])) for some in both for f in by]


def room(quick: bool) -> list[Table]:
    """Measure both sets; in short, three machines of the first."""
    if not FOLDER.is_dir():
        measure.say(f"servers: expected the labelled servers in {FOLDER}, got none")
        sys.exit(2)
    warnings.simplefilter("ignore")  # of columns that say nothing, or are alike
    raised, kept, ages, missed, figures = [], [], [], [], dict[str, list[float]]()
    names = [*SETS][: 1 if quick else None]
    for name in names:
        pattern, period_s = SETS[name]
        paths = sorted(FOLDER.glob(pattern))[: 3 if quick else None]
        servers = [read(path, period_s) for path in paths]
        with tempfile.TemporaryDirectory() as folder:
            files = {each.name: written(each, Path(folder)) for each in servers}
            raised += alarmed(name, servers, files)
            normals = {}
            for but in measure.progress(["", *files], f"{name}: fits"):
                some = [train for each, (train, _) in files.items() if each != but]
                normals[but] = submerge.Model.fit(some, node_by="file").judge.normal
        kept += promised(name, servers)
        for row, misses in aged(name, servers, normals, AGES[: 1 if quick else None]):
            ages, missed = [*ages, row], missed + misses
        for method, each in beside(name, servers, normals[""], 500 if quick else 5000):
            figures[method] = [*figures.get(method, ()), *each]
    heads, rule = [f"{name} {each}" for name in names for each in FIGURES], figures[RULE]
    above = [(m, i, each[i] - rule[i]) for m, each in figures.items() for i in range(len(heads))]
    precise = [each for each in above if each[1] % 2 and each[2] > WITHIN_AP]
    more = [f"{method} ({heads[i]}, {by:.3f})" for method, i, by in precise]
    alarms = {"": "", "way": "", "found": "", "share": ".2f", "false": ".2f", "in alarm": ".3f"}
    alarms |= dict.fromkeys(("blame", "beyond", "alarms"), "")
    by = {f"{how}{way}": ".3f" for how in ("", "EWMA ") for way in ("own", "fleet", "rule", "lost")}
    lost = f"The rule loses more than {WITHIN_AUC} at: {', '.join(missed) or 'none'}."
    better = f"More precise than the rule by more than {WITHIN_AP}: {', '.join(more) or 'none'}."
    promises = {"": "", "one a": "", "alarms": "d", "promised": ".1f", "realised / promised": ".2f"}
    promises |= {"about": "", "in alarm": ".3f"}
    others = [(method, *each) for method, each in figures.items()]
    return [
        Table("Alarms", alarms, raised),
        Table("Promised", promises, kept),
        Table("By rows", {"": "", "rows": ""} | by | {"alone": ".3f"}, ages, lost),
        Table("Beside other methods", {"": ""} | dict.fromkeys(heads, ".3f"), others, better),
    ]


if __name__ == "__main__":
    page(room)
