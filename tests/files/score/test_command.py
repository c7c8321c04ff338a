"""`submerge score`: files held against a model; equal to an obvious twin, whatever the file is."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import submerge as core
from submerge import Channel, Schema, Subspace, hotelling, spe
from submerge.features import Gaussian, RandomFourier
from submerge.headings import lags_of
from submerge.pca.factor import Precision
from submerge.pca.missing import fill, shrunk
from submerge.pca.reconstruct import Reconstruction
from submerge.protocol.summaries import Subspaces
from submerge.stats.score_limits import Limits
from submerge_aggregator.questions.views import ShownRank
from submerge_files.console import progress
from submerge_files.console.curves import MOST_POINTS, Highest
from support.commands import shell, stands_at_its_socket
from support.house import SCHEMA as HOUSE_SCHEMA
from support.house import House
from support.score_files import (
    DIM,
    LEARNT,
    LIMITS,
    MIX,
    NAMES,
    RANK,
    SCHEMA,
    SHARES,
    column,
    kept,
    learnt,
    some_rows,
    table,
    written,
)


@pytest.fixture
def submerge(monkeypatch, capsys, tmp_path):
    monkeypatch.chdir(tmp_path)
    return shell(monkeypatch, capsys)


@pytest.fixture
def model(tmp_path):
    """A saved model of SCHEMA, with limits."""
    return kept(tmp_path / "m.model", SCHEMA, summary=learnt(), limits=LIMITS)


def twin(rows: np.ndarray, schema: Schema = SCHEMA, held: Subspace | None = None):
    """SPE, T2 and shares by the functions that say what they are."""
    X, shown = schema.scaled(rows), (held or learnt(schema)).truncated(RANK)
    recall = Reconstruction(shown, schema.width // lags_of(schema.names))
    return spe(X, shown), hotelling(X, shown), recall.blame(X - shown.mean)


def agrees(lines, rows, schema=SCHEMA, held=None) -> None:
    """Every line has the twin's scores and channels."""
    expected_spe, expected_t2, shares = twin(rows, schema, held)
    assert expected_spe == pytest.approx(column(lines, "spe"), rel=1e-6)
    assert expected_t2 == pytest.approx(column(lines, "t2"), rel=1e-6)
    top = np.argsort(-shares, axis=1)[:, :3]
    for place in range(3):
        blamed = top[:, place]
        assert [schema.names[j] for j in blamed] == [line[f"top{place + 1}"] for line in lines]
        expected = shares[np.arange(len(shares)), blamed]
        assert expected == pytest.approx(column(lines, f"share{place + 1}"), rel=1e-3)


# -- the scores --------------------------------------------------------------------------


def test_scores_are_what_the_twin_says(submerge, model, tmp_path):
    """Columns in another order, another one beside them, and more rows than are read at once."""
    rows = some_rows(700)
    rows[500, 3] += 4.0
    order = [3, 1, 5, 0, 2, 4]
    wide = np.column_stack([np.arange(700.0), rows[:, order]])
    path = written(tmp_path / "x.csv", wide, ("shift", *(NAMES[i] for i in order)))
    ran = submerge("score", path, "--model", model)
    lines = table(ran.out)

    assert (0, 700) == (ran.status, len(lines))
    agrees(lines, rows)
    assert [str(path)] * 700 == [line["file"] for line in lines]
    assert list(range(1, 701)) == [int(line["row"]) for line in lines]
    assert ("0.999", "d") == (lines[500]["over"], lines[500]["top1"])
    assert "note: left out 1 column that the model has no channel for: shift\n" in ran.err
    assert f"highest    row 501: SPE {float(lines[500]['spe']):.4g}" in ran.err


def test_over_is_the_highest_limit_that_a_score_is_above(submerge, model, tmp_path):
    rows = some_rows(2000, 3)
    lines = table(submerge("score", written(tmp_path / "x.csv", rows), "--model", model).out)
    found, inside, _ = twin(rows)

    for name, scores, values in (
        ("over", found, LIMITS.spe),
        ("over_spe", found, LIMITS.spe),
        ("over_t2", inside, LIMITS.t2),
    ):
        expected = [
            max(
                (share for share, v in zip(SHARES[1:], values[1:], strict=True) if s > v), default=0
            )
            for s in scores
        ]
        assert {0, 0.95, 0.99} <= set(expected)
        assert expected == [float(line[name] or 0) for line in lines]


@pytest.mark.parametrize("kind", ["npy", "matrix", "gzip"])
def test_a_file_without_names_goes_by_place(submerge, model, tmp_path, kind):
    rows = some_rows(60)
    path = tmp_path / "x.npy"
    if kind == "npy":
        np.save(path, rows)
    elif kind == "matrix":
        path = tmp_path / "x.dat"
        np.savetxt(path, rows)
    else:
        path = tmp_path / "x.dat.gz"
        np.savetxt(path, rows)

    agrees(table(submerge("score", path, "--model", model).out), rows)


def test_a_kernel_group_is_scored_by_features_and_by_readings(submerge, tmp_path):
    """As a client does: the larger of the two, and channels by the readings."""
    schema = replace(SCHEMA, features=RandomFourier(Gaussian(0.05), 64))
    learner = Subspaces(4, oversample=2).learner(schema)
    X = schema.scaled(LEARNT)
    learner.learn(X, schema.features.lift(X))
    summary = learner.summary()
    shown = Subspaces(4, linear_rank=3).shown(summary)

    def scores(rows):
        X = schema.scaled(rows)
        phi = schema.features.lift(X).astype(float)
        return spe(phi, shown.features), hotelling(phi, shown.features), spe(X, shown.linear)

    usual = [tuple(map(float, np.quantile(each, SHARES))) for each in scores(some_rows(900, 8))]
    limits = Limits(SHARES, usual[0], usual[1], 900, usual[2])
    path = kept(tmp_path / "k", schema, shown=ShownRank(4), summary=summary, limits=limits)
    rows = some_rows(150)
    rows[20] += 3.0
    rows[40] += 8.0 * MIX[0]  # far out, and along what varies: the features alone see it
    lines = table(submerge("score", written(tmp_path / "x.csv", rows), "--model", path).out)

    found, inside, linear = scores(rows)
    anomaly_score = limits.anomaly_score({"spe": found, "linear": linear})
    shares = Reconstruction(shown.linear).blame(schema.scaled(rows) - shown.linear.mean)
    assert {False, True} == set((limits.anomaly_score({"spe": found}) < anomaly_score).tolist())
    for name, expected in (
        ("spe", found),
        ("t2", inside),
        ("linear", linear),
        ("anomaly_score", anomaly_score),
    ):
        assert expected == pytest.approx(column(lines, name), rel=1e-5, abs=1e-8)
    assert [NAMES[j] for j in shares.argmax(axis=1)] == [line["top1"] for line in lines]
    assert ["0.999", "0.999"] == [lines[i]["over"] for i in (20, 40)]


def test_a_model_with_factors_gives_distances(submerge, tmp_path):
    """Beside SPE and T2, with limits of their own; rows are listed by them."""
    factors = Subspaces(RANK).factors(learnt())
    limits = replace(LIMITS, distance=tuple(9.0 + 2 * share for share in LIMITS.shares))
    path = kept(tmp_path / "m", SCHEMA, summary=learnt(), limits=limits, factors=factors)
    rows = some_rows(60)
    rows[7, 1] += 4.0
    rows[30, 3] = np.nan
    picture = tmp_path / "p.png"
    run = submerge("score", written(tmp_path / "x.csv", rows), "--model", path, "--plot", picture)
    lines = table(run.out)

    precision = Precision.of(learnt(), factors[0])
    filled = fill(SCHEMA.scaled(rows), learnt(), precision)[0]
    found = precision.measure(filled - learnt().mean)[1]
    assert found == pytest.approx(column(lines, "distance"), rel=1e-4)
    assert list(lines[0])[2:8] == ["distance", "spe", "t2", "over", "over_spe", "over_t2"]
    by_distance = [max((s for s in SHARES[1:] if d > 9 + 2 * s), default=0) for d in found]
    assert {0, 0.999} <= {*by_distance}
    whole = [i for i in range(60) if i != 30]
    assert [by_distance[i] for i in whole] == [float(lines[i]["over"] or 0) for i in whole]
    assert "distance above 95 %" in " ".join(run.err.split())
    assert f"row {found.argmax() + 1}: distance {found.max():.4g}, SPE" in run.err
    assert picture.stat().st_size > 1000


def test_json_lines_say_what_a_client_says(submerge, model, tmp_path):
    """The same words, nothing that there is not, and what a gap was taken for, in its unit."""
    rows = some_rows(30)
    rows[4, 2] = np.nan
    rows[9] = np.nan
    path = written(tmp_path / "x.csv", rows)
    lines = [
        json.loads(line)
        for line in submerge("score", path, "--model", model, "--json").out.splitlines()
    ]

    filled, _ = fill(SCHEMA.scaled(rows[4:5]), learnt().truncated(RANK))
    value = filled[0, 2] * SCHEMA.scaling.scale[2] + SCHEMA.scaling.offset[2]
    assert {"c": pytest.approx(value)} == lines[4]["filled"]
    assert {"file": str(path), "row": 10, "unscored": "gaps"} == lines[9]
    assert {"file", "row", "spe", "t2", "top"} == lines[0].keys() - {"over", "over_spe", "over_t2"}
    assert twin(rows[:4])[0] == pytest.approx([line["spe"] for line in lines[:4]])


def test_lags_are_laid_as_a_client_lays_them(submerge, tmp_path):
    """No row of another file is a past; the first rows lead in."""
    names = [*"abc", *(f"{name}-{lag}" for lag in (1, 2) for name in "abc")]
    schema = Schema(tuple(map(Channel, names)))

    def laid(rows):
        return np.hstack([rows[2:], rows[1:-1], rows[:-2]])

    held = learnt(schema, laid(LEARNT[:, :3]))
    path = kept(tmp_path / "m", schema, summary=held)
    first, second = some_rows(600)[:, :3], some_rows(40, 5)[:, :3]
    files = [
        written(tmp_path / f"{i}.csv", rows, names[:3]) for i, rows in enumerate((first, second))
    ]
    ran = submerge("score", *files, "--model", path)
    lines = table(ran.out)

    assert ["lead-in"] * 2 == [line["unscored"] for line in lines[:2]]
    assert [""] * 2 == [line["spe"] for line in lines[600:602]]
    agrees(lines[2:600] + lines[602:], np.vstack([laid(first), laid(second)]), schema, held)
    assert "640 of 2 files: 636 scored, 4 not (lead-in)" in ran.err


def test_a_file_that_has_its_past_beside_it_needs_no_lead_in(submerge, tmp_path):
    schema = Schema(tuple(map(Channel, ("a", "b", "c", "a-1", "b-1", "c-1"))))
    held = learnt(schema)
    path = kept(tmp_path / "m", schema, summary=held)
    rows = some_rows(50)

    lines = table(
        submerge("score", written(tmp_path / "x.csv", rows, schema.names), "--model", path).out
    )
    agrees(lines, rows, schema, held)


@given(st.integers(1, 5), st.integers(1, 4))
def test_lags_are_known_by_their_names(width, lags):
    sensed = [f"s{i}" for i in range(width)]
    names = [*sensed, *(f"{name}-{lag}" for lag in range(1, lags) for name in sensed)]

    assert lags == lags_of(names)
    assert 1 == lags_of([*names, "other"])


# -- whose mean --------------------------------------------------------------------------


OWN = replace(SCHEMA, center="own")


@pytest.mark.parametrize("option", [(), *(("--mean", each) for each in ("own", "model"))])
def test_a_file_is_a_node_with_a_mean_of_its_own(submerge, tmp_path, option):
    """Where center = "own"; the fleet's mean has to be asked for."""
    held = learnt(OWN)
    path = kept(tmp_path / "m", OWN, summary=held)
    parts = some_rows(700, shift=3.0), some_rows(40, 5, shift=-2.0)
    files = [written(tmp_path / f"{i}.csv", rows) for i, rows in enumerate(parts)]
    lines = table(submerge("score", *files, "--model", path, *option).out)

    begin = 0
    for rows in parts:
        own = held if "model" in option else replace(held, mean=OWN.scaled(rows).mean(axis=0))
        agrees(lines[begin : begin + len(rows)], rows, OWN, own)
        begin += len(rows)


def test_gaps_have_no_part_in_a_mean(submerge, tmp_path):
    """What was filled in is the fleet's opinion; a channel never seen keeps the fleet's mean."""
    held = learnt(OWN)
    path = kept(tmp_path / "m", OWN, summary=held)
    rows = some_rows(80, shift=3.0)
    rows[:50, 1] = np.nan
    rows[:, 4] = np.nan
    ran = submerge("score", written(tmp_path / "x.csv", rows), "--model", path)

    X = OWN.scaled(rows)
    means = [held.mean[j] if j == 4 else np.nanmean(X[:, j]) for j in range(DIM)]
    shown = replace(held, mean=np.array(means)).truncated(RANK)
    expected = spe(fill(X, shown)[0], shown)
    assert expected == pytest.approx(column(table(ran.out), "spe"), rel=1e-6)
    assert "80 with gaps filled" in ran.err


def test_a_kernel_group_has_two_means(submerge, tmp_path):
    """Of the features and of the readings: those of the file."""
    schema = replace(OWN, features=RandomFourier(Gaussian(0.05), 64))
    learner = Subspaces(4, oversample=2).learner(schema)
    learner.learn(schema.scaled(LEARNT), schema.lift(LEARNT))
    summary = learner.summary()
    path = kept(tmp_path / "m", schema, shown=ShownRank(4), summary=summary)
    rows = some_rows(90, shift=1.0)
    lines = table(submerge("score", written(tmp_path / "x.csv", rows), "--model", path).out)

    X, phi = schema.scaled(rows), schema.lift(rows).astype(float)
    shown = Subspaces(4, linear_rank=3).shown(summary)
    features = replace(shown.features, mean=phi.mean(axis=0))
    linear = replace(shown.linear, mean=X.mean(axis=0))
    assert spe(phi, features) == pytest.approx(column(lines, "spe"), rel=1e-5)
    assert spe(X, linear) == pytest.approx(column(lines, "linear"), rel=1e-5)
    assert {""} == {line["anomaly_score"] for line in lines}


def test_a_mean_of_few_rows_is_said(submerge, tmp_path):
    path = kept(tmp_path / "m", OWN, summary=learnt(OWN))
    ran = submerge("score", written(tmp_path / "x.csv", some_rows(9)), "--model", path)

    assert "note: the mean of x.csv is of only 9 rows, fewer than 10\n" in ran.err


# -- what cannot be scored ---------------------------------------------------------------


def test_rows_without_scores_say_why(submerge, model, tmp_path):
    """Half a row of gaps is filled, more are not; nor is what is meant otherwise."""
    rows = some_rows(10)
    rows[1, 1:4] = np.nan
    rows[2, 1:5] = np.nan
    rows[3, 0] = 1e30
    rows[4, 0] = -100.0
    rows[5, 0] = np.nan  # in no state that is known
    path = written(tmp_path / "x.csv", rows)
    ran = submerge("score", path, "--model", model, "--when", "a > -50")
    lines = table(ran.out)

    why = ["", "", "gaps", "", "other state", "other state", "", "", "", ""]
    assert why == [line["unscored"] for line in lines]
    assert ["0", "3", "", "0", ""] == [line["filled"] for line in lines[:5]]
    assert "10: 7 scored, 2 not (other state), 1 not (gaps)" in ran.err
    assert float(lines[3]["spe"]) > 1e20


def test_zeros_may_be_gaps(submerge, model, tmp_path):
    rows = some_rows(12)
    zeros = rows.copy()
    zeros[5, 2], rows[5, 2] = 0.0, np.nan
    first, second = (
        submerge("score", written(tmp_path / "x.csv", each), "--model", model, *option).out
        for each, option in ((rows, ()), (zeros, ("--zero-is-missing",)))
    )
    assert first == second


def test_a_channel_without_a_column_is_filled_and_said_once(submerge, model, tmp_path):
    """On request; without it, it is an error."""
    rows = some_rows(40)
    names = [name for name in NAMES if name != "c"]
    files = [
        written(tmp_path / name, np.delete(rows, 2, axis=1), names) for name in ("x.csv", "y.csv")
    ]
    ran = submerge("score", *files, "--model", model, "--allow-missing")

    rows[:, 2] = np.nan
    shown = learnt().truncated(RANK)
    expected = spe(fill(SCHEMA.scaled(rows), shown)[0], shown)
    assert expected == pytest.approx(column(table(ran.out)[:40], "spe"), rel=1e-6)
    left, _ = shrunk(~np.isnan(rows[0]), shown)
    over = expected / left > LIMITS.spe[1]
    assert over.tolist() == [line["over"] != "" for line in table(ran.out)[:40]]
    assert (expected > LIMITS.spe[1]).sum() < over.sum()
    said = "note: no column for 1 channel of the model, so each row is filled: c\n"
    assert 1 == ran.err.count(said)


# -- models ------------------------------------------------------------------------------


def test_a_running_aggregators_model_scores(submerge, tmp_path, monkeypatch):
    """At the rank that it says, which is less than it sends."""
    rows = some_rows(300)
    with House(tmp_path) as house:
        stands_at_its_socket(house, monkeypatch)
        house.hears("c", rows)
        house.passes(61.0)
        path = written(tmp_path / "x.csv", rows, HOUSE_SCHEMA.names)
        live = submerge("score", path, "--store", house.store)
        submerge("model", "save", "m.model", "--store", house.store)
        from_file = submerge("score", path, "--model", "m.model")

    shown = Subspace.of(rows, HOUSE_SCHEMA, rank=2)
    assert spe(rows, shown) == pytest.approx(column(table(live.out), "spe"), rel=1e-4)
    assert live.out == from_file.out


def test_an_engine_that_was_saved_by_hand_scores(submerge, tmp_path):
    """`submerge.dumps`: by place, without limits."""
    engine = core.SAPCA(rank=2).partial_fit(LEARNT)
    (tmp_path / "m.npz").write_bytes(core.dumps(engine))
    rows = some_rows(50)
    ran = submerge("score", written(tmp_path / "x.csv", rows), "--model", "m.npz")

    assert spe(rows, engine.shown) == pytest.approx(column(table(ran.out), "spe"), rel=1e-6)
    assert "note: an engine has no measured limits: `over` stays empty\n" in ran.err


def test_an_old_file_needs_to_be_told_its_rank(submerge, tmp_path):
    """Form 1 is the bytes that travel; nobody says how many directions of them are spare."""
    path = kept(tmp_path / "m", SCHEMA, shown=None, summary=learnt(), limits=LIMITS)
    rows = some_rows(30)
    data = written(tmp_path / "x.csv", rows)
    refused = submerge("score", data, "--model", path)

    assert (2, "", 1) == (refused.status, refused.out, refused.err.count("\n"))
    assert "expected --rank, since" in refused.err
    agrees(table(submerge("score", data, "--model", path, "--rank", RANK).out), rows)


def test_limits_of_another_rank_are_said(submerge, model, tmp_path):
    path = written(tmp_path / "x.csv", some_rows(30))
    ran = submerge("score", path, "--model", model, "--rank", 3)

    assert "note: the limits are of scores at rank 2, with which nodes score\n" in ran.err


# -- where scores go ---------------------------------------------------------------------


def test_packed_scores_are_the_same_and_twice_the_same_bytes(submerge, model, tmp_path):
    path = written(tmp_path / "x.csv", some_rows(100))
    plain = submerge("score", path, "--model", model, "-o", "-").out
    for name in ("a.csv.gz", "b.csv.gz", "a.csv"):
        ran = submerge("score", path, "--model", model, "-o", name)
        assert (0, "") == ran[:2]

    assert plain == (tmp_path / "a.csv").read_text()
    assert plain == gzip.decompress((tmp_path / "a.csv.gz").read_bytes()).decode()
    assert (tmp_path / "a.csv.gz").read_bytes() == (tmp_path / "b.csv.gz").read_bytes()


@pytest.mark.parametrize("name", ["s.csv", "s.csv.gz"])
def test_scores_are_written_whole_or_not_at_all(submerge, model, tmp_path, name):
    """A bad number deep inside a file leaves the older scores, and no rest."""
    path = written(tmp_path / "x.csv", some_rows(600))
    submerge("score", path, "--model", model, "-o", name)
    before = (tmp_path / name).read_bytes()
    with path.open("a") as file:
        file.write("1,2,3,4,5,six\n")
    ran = submerge("score", path, "--model", model, "-o", name)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert "line 602, column 6 (f): expected a number" in ran.err
    assert before == (tmp_path / name).read_bytes()
    assert [] == list(tmp_path.glob(".*"))


def test_only_scores_are_overwritten(submerge, model, tmp_path):
    path = written(tmp_path / "x.csv", some_rows(20))
    (tmp_path / "thesis.csv").write_text("my thesis")
    (tmp_path / "thesis.csv.gz").write_bytes(b"\x1f\x8b\x08 my thesis")
    for name in ("thesis.csv", "thesis.csv.gz"):
        ran = submerge("score", path, "--model", model, "-o", name)
        assert (2, True) == (ran.status, f"{name} exists and has no scores in it" in ran.err)
    assert "my thesis" == (tmp_path / "thesis.csv").read_text()
    for option in ((), ("--json",), ()):
        assert 0 == submerge("score", path, "--model", model, "-o", "s.csv", *option).status


@pytest.mark.slow
def test_a_picture_is_drawn(submerge, model, tmp_path):
    path = written(tmp_path / "x.csv", some_rows(30))
    ran = submerge("score", path, path, "--model", model, "-o", "s.csv", "--plot", "s.png")

    assert ran.err.endswith("picture    s.png\n")
    assert b"\x89PNG" == (tmp_path / "s.png").read_bytes()[:4]


@settings(max_examples=15)
@given(st.lists(st.integers(0, 3000), max_size=5), st.integers(0, 99))
def test_a_picture_loses_no_peak(sizes, seed):
    """However long the series: each point is the highest of as many rows, and none is left out."""
    rng = np.random.default_rng(seed)
    maxima, scores = Highest(2), rng.random(sum(sizes))
    scores[rng.random(len(scores)) < 0.2] = np.nan
    for part in np.split(scores, np.cumsum(sizes)[:-1]) if sizes else []:
        maxima.add(np.column_stack([np.full(len(part), np.nan), part]))
    at, highest = maxima.points(1)

    expected = {
        begin + 1: np.nanmax(scores[begin : begin + maxima.every])
        for begin in range(0, len(scores), maxima.every)
        if not np.isnan(scores[begin : begin + maxima.every]).all()
    }
    assert expected == dict(zip(at.tolist(), highest.tolist(), strict=True))
    assert len(at) <= MOST_POINTS


@pytest.mark.slow
def test_a_long_file_takes_no_more_memory(submerge, model, tmp_path):
    """Text is streamed: six times the rows, and the same peak."""
    maxima = []
    for n in (5_000, 30_000):
        path = written(tmp_path / f"{n}.csv", some_rows(n))
        submerge("score", path, "--model", model, "-o", "s.csv")
        tracemalloc.start()
        submerge("score", path, "--model", model, "-o", "s.csv")
        maxima.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()

    assert maxima[1] < 1.5 * maxima[0]


# -- the summary -------------------------------------------------------------------------


def test_the_summary_counts_what_the_lines_say(submerge, model, tmp_path):
    """Above 95 % are also those above 99 %."""
    ran = submerge("score", written(tmp_path / "x.csv", some_rows(2000, 3)), "--model", model)
    over = column(table(ran.out), "over")
    first = [line["top1"] for line in table(ran.out) if float(line["over"] or 0) >= 0.99]

    counts = [int((over >= share).sum()) for share in (0.95, 0.99, 0.999)]
    said = ", ".join(
        f"{100 * share:.4g} %: {n} ({n / 2000:.2%})"
        for share, n in zip((0.95, 0.99, 0.999), counts, strict=True)
    )
    assert f"SPE above  {said}\n" in ran.err
    name = max(set(first), key=first.count)
    assert f"channels   first in rows above 99 %: {name} {first.count(name)}" in ran.err
    most_anomalous = np.argsort(-column(table(ran.out), "spe"))[:5] + 1
    reported = [
        line.split("row ")[1].split(":")[0] for line in ran.err.splitlines() if "row " in line
    ]
    assert [str(row) for row in most_anomalous] == reported


# -- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["x.csv"],
            "expected --model FILE, --config FILE, --store PATH or --at URL of an aggregator",
        ),
        (["x.csv", "--model", "m.model", "--group", "a"], "--group is for the model of a running"),
        (["x.csv", "--model", "x.csv"], "x.csv is not a model file: expected what `submerge fit"),
        (["x.csv", "--model", "none"], "expected a saved model in none, got: No such file"),
        (["x.csv", "--model", "zip"], "zip is neither a model file nor a saved engine: expected a"),
        (["x.csv", "--model", "young"], "young has learnt nothing yet: score with a later one"),
        (["x.csv", "--model", "later"], "'4' of it: update submerge"),
        (["x.csv", "--model", "torn"], "None bytes of it were written, and"),
        (["x.csv", "--model", "m.model", "--rank", "5"], "from 1 to the 4 directions that"),
        (["x.csv", "--model", "m.model", "--mean", "own"], 'center = "own" for --mean own'),
        (["x.csv", "--model", "m.model", "--when", "z > 1"], "expected a channel's name"),
        (["none.csv", "--model", "m.model"], "none.csv"),
        (["x.csv", "none.csv", "--model", "m.model"], "none.csv"),
        (["head.csv", "--model", "m.model"], "expected rows of numbers below line 1"),
        (["other.csv", "--model", "m.model"], "expected a column for each of the model's channels"),
        (["third.csv", "--model", "m.model"], "got only 2 of them; rename its columns"),
        (
            ["spelt.csv", "--model", "m.model"],
            "(a channel of the model; --allow-missing), got no such column; did you mean 'C'?",
        ),
        (["x.csv", "--model", "m.model", "--keep", "A"], "--keep), got no such column; did you"),
        (["kept.csv", "--model", "m.model", "--keep", "spe"], "--keep spe: the scores have a col"),
        (["x.csv", "--model", "m.model", "--mean", "first:2"], "with at least 10 rows, got"),
        (["x.csv", "--model", "m.model", "--mean", "frist:400"], "--mean is model, own, first:400"),
        (["x.csv", "--model", "m.model", "--long", "a"], "--long is two columns such as"),
        (["x.csv", "--model", "m.model", "--json", "-o", "s.parquet"], "--json writes lines of"),
        (["none-*.csv", "--model", "m.model"], "expected files that match, got none"),
        (
            ["narrow.dat", "--model", "m.model"],
            "expected 6 columns, one for each channel of the model",
        ),
        (["gaps.csv", "--model", "m.model"], "got none of 2 (2 gaps): a row needs values"),
        (["x.csv", "--model", "m.model", "-o", "no/s.csv"], "a folder that can be written to"),
        (["x.csv", "--model", "m.model", "-o", "x.csv"], "x.csv is an input, and would be"),
        (["x.csv", "--model", "m.model", "-o", "m.model"], "m.model is an input, and would be"),
        (["x.csv", "--model", "m.model", "--plot", "s.pdf"], "picture's name to end in .png"),
    ],
)
def test_bad_input_is_one_line(submerge, model, tmp_path, arguments, said):
    """Status 2: what was expected, what came; and nothing is written."""
    rows = some_rows(4)
    written(tmp_path / "x.csv", rows)
    written(tmp_path / "other.csv", rows[:, :3], "uvw")
    written(tmp_path / "third.csv", rows[:, :3], "abz")
    written(tmp_path / "spelt.csv", rows, "abCdef")
    written(tmp_path / "kept.csv", np.column_stack([rows, rows[:, 0]]), [*NAMES, "spe"])
    written(tmp_path / "gaps.csv", np.full((2, DIM), np.nan))
    (tmp_path / "head.csv").write_text("a,b,c,d,e,f\n")
    np.savetxt(tmp_path / "narrow.dat", rows[:, :3])
    kept(tmp_path / "young", SCHEMA)
    (tmp_path / "zip").write_bytes(b"PK\x03\x04 of something else")
    (tmp_path / "later").write_bytes(b"submerge model 4 {}\n" + model.read_bytes())
    (tmp_path / "torn").write_bytes(b'submerge model 3 {"rank": 0}\n' + model.read_bytes())
    if "-o" not in arguments:
        arguments = [*arguments, "-o", "s.csv"]
    ran = submerge("score", *arguments)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert said in ran.err
    assert not (tmp_path / "s.csv").exists()
    assert [] == list(tmp_path.glob(".*"))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(("patience_s", "shown"), [(-1.0, True), (60.0, False)])
def test_long_work_shows_how_far_it_is(submerge, model, tmp_path, monkeypatch, patience_s, shown):
    """What is done soon shows nothing."""
    terminal = Terminal()
    monkeypatch.setattr("sys.stderr", terminal)
    monkeypatch.setattr(progress, "PATIENCE_S", patience_s)
    path = written(tmp_path / "x.csv", some_rows(30))
    submerge("score", path, "--model", model, "-o", "s.csv")

    assert shown == ("30 rows read" in terminal.getvalue())
