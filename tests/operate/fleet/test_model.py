"""`submerge model`: a model's figures, its file, and comparisons."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from submerge import Channel, Scaling, Schema, Subspace, UsageError
from submerge.features import Gaussian, RandomFourier
from submerge.history.knowledge import Learnt
from submerge.pca.factor import Factors
from submerge.protocol.messages import Counts, Model
from submerge.protocol.summaries import KernelSummary, Subspaces
from submerge.stats.score_limits import Limits
from submerge_aggregator.questions.views import ShownRank
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.units import ago
from submerge_files.model_file import decoded, read
from submerge_operate.fleet.model_figures import (
    compare,
    deviations,
    figures,
    figures_text,
    schema_differences,
)
from submerge_proto.files.learnt import packed
from submerge_proto.wire import codec
from support.commands import shell, stands_at_its_socket
from support.house import SCHEMA, House
from support.nodes import EPOCH

DIM = SCHEMA.dim


def subspace(rows: np.ndarray, *, rank: int = 4, schema: Schema = SCHEMA) -> Subspace:
    return Subspace.of(rows, schema, rank=rank)


def model_of(rows: np.ndarray | None, *, schema: Schema = SCHEMA, **fields: object) -> Model:
    """A root's model of some rows."""
    figures_text = {
        "group": "room",
        "version": 1_700_000_000_123,
        "schema": schema.canonical,
        "fingerprint": schema.fingerprint,
        "summary": None if rows is None else subspace(rows, schema=schema),
        "limits": None,
        "counts": Counts(0 if rows is None else len(rows), 3, 1),
        "nodes": 2,
        "staleness": (32.0, 64.0, 128.0),
        "created": EPOCH,
        "expires": EPOCH + 3000,
    }
    return Model(**figures_text | fields)


def file_of(model: Model) -> bytes:
    """A model as the bytes of a file."""
    return packed(Learnt(model))


def saved(path, rows: np.ndarray | None, **fields):
    path.write_bytes(file_of(model_of(rows, **fields)))
    return path


def some_rows(seed: int = 0, *, shift: float = 0.0, spread: float = 1.0) -> np.ndarray:
    """300 rows whose variances halve twice from one direction to the next."""
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(np.random.default_rng(7).normal(size=(DIM, DIM)))[0]
    rows = rng.normal(size=(300, DIM)) * 2.0 ** -np.arange(DIM) * spread
    return rows @ turned.T + 20.0 + shift


ROWS = some_rows()


@pytest.fixture
def submerge(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


@pytest.fixture
def house(tmp_path, monkeypatch) -> Iterator[House]:
    """A root whose model has learnt ROWS."""
    with House(tmp_path) as house:
        stands_at_its_socket(house, monkeypatch)
        house.hears("c", ROWS)
        house.passes(61.0)
        yield house


# -- the numbers -----------------------------------------------------------------------


def slow_angles(first: Subspace, second: Subspace, rank: int) -> np.ndarray:
    """The slow twin: cosines are the square roots of the eigenvalues of P Q P."""
    p, q = (each.basis[:, :rank] @ each.basis[:, :rank].T for each in (first, second))
    squares = np.linalg.eigvalsh(p @ q @ p)[::-1][:rank]
    return np.degrees(np.arccos(np.sqrt(squares.clip(0, 1))))[::-1]


def slow_separated(first: Subspace, second: Subspace, rank: int) -> int:
    """The slow twin: the last direction that is twice the next, in both."""
    last = []
    for each in (first, second):
        eigenvalues = [*(each.sigma**2), each.spectral_bound]
        pairs = list(pairwise(eigenvalues))[:rank]
        last.append(max((i for i, (a, b) in enumerate(pairs, 1) if a >= 2 * b and a), default=0))
    return min(last)


@settings(max_examples=40)
@given(st.integers(0, 2**16), st.integers(1, 6), st.integers(1, 6), st.integers(1, 7))
def test_a_comparison_is_what_its_slow_twin_says(seed, kept, other, rank):
    """Angles, separation, variances: whatever the two have kept."""
    rng = np.random.default_rng(seed)
    scales = 2.0 ** -(np.arange(DIM) * rng.choice([0.0, 0.4, 1.0, 3.0]))
    first, second = (
        subspace(rng.normal(size=(50, DIM)) * scales + rng.normal(size=DIM), rank=each)
        for each in (kept, other)
    )
    found = compare(first, second, rank=rank)
    r = min(rank, first.rank, second.rank)

    assert r == found.rank
    # arccos loses half the digits where the angle is small; ours does not.
    assert slow_angles(first, second, r) == pytest.approx(np.array(found.angles_deg), abs=1e-4)
    q = slow_separated(first, second, r)
    assert q == found.separated
    if q:
        assert slow_angles(first, second, q)[0] == pytest.approx(found.separated_deg, abs=1e-4)
    else:
        assert found.separated_deg is None
    ratio = (second.energy / second.weight) / (first.energy / first.weight)
    assert ratio == pytest.approx(found.variance_ratio)
    ratios = [(second.sigma[i] ** 2 / 50) / (first.sigma[i] ** 2 / 50) for i in range(r)]
    assert ratios == pytest.approx(found.variance_ratios)


def test_a_subspace_is_like_itself():
    one = subspace(ROWS)
    found = compare(one, one)

    assert max(found.angles_deg) < 1e-5
    assert (1.0, (0.0,) * DIM) == (found.variance_ratio, found.shift)


def test_a_turn_is_measured_to_its_last_digits():
    """A millionth of a degree, where a cosine would say nothing."""
    turn = np.radians(1e-6)
    plane = np.zeros((DIM, 2))
    plane[0, 0] = plane[1, 1] = 1.0
    turned = plane.copy()
    turned[:3, 1] = 0.0, np.cos(turn), np.sin(turn)
    first = replace(subspace(ROWS, rank=2), basis=plane)

    found = compare(first, replace(first, basis=turned))
    assert 1e-6 == pytest.approx(found.angles_deg[0], rel=1e-6)


def test_directions_of_like_variance_are_not_separated():
    """Two samples of round noise turn freely, and nothing is wrong with them."""
    first, second = (
        subspace(np.random.default_rng(seed).normal(size=(400, DIM)), rank=3) for seed in (0, 1)
    )
    found = compare(first, second)

    assert (0, None) == (found.separated, found.separated_deg)
    assert found.angles_deg[0] > 20


def test_deviations_are_exact_where_all_is_kept():
    assert ROWS.std(axis=0) == pytest.approx(deviations(subspace(ROWS, rank=DIM)))


@pytest.mark.parametrize("rank", [1, 3, 5])
def test_deviations_sum_to_all_variance(rank):
    """What was not kept is spread, never lost."""
    one = subspace(ROWS, rank=rank)

    assert one.energy / one.weight == pytest.approx((deviations(one) ** 2).sum())


def test_a_shift_is_given_in_deviations():
    one = subspace(ROWS, rank=DIM)
    away = subspace(ROWS + np.array([3.0, 0, 0, 0, 0, 0]), rank=DIM)
    shift = compare(one, away).shift

    assert 3.0 / ROWS[:, 0].std() == pytest.approx(shift[0])
    assert max(map(abs, shift[1:])) < 1e-9


def test_a_channel_that_never_varied_shifts_without_measure():
    """Infinite, not a division by zero; and nothing if it stays."""
    flat = ROWS.copy()
    flat[:, 2] = 5.0
    moved = flat.copy()
    moved[:, 2] = 6.0
    one, other = subspace(flat, rank=DIM), subspace(moved, rank=DIM)

    assert abs(compare(one, other).shift[2]) > 1e6
    assert 0.0 == compare(one, one).shift[2]


def test_only_what_vectors_mean_keeps_two_from_comparison():
    """Another half-life is listed; another scaling makes other vectors of the same readings."""
    lines, comparable = schema_differences(SCHEMA, replace(SCHEMA, half_life=60.0))
    assert (("half_life: expected None, got 60.0",), True) == (lines, comparable)

    scaled = replace(SCHEMA, scaling=Scaling((0.0,) * DIM, (2.0,) * DIM))
    lines, comparable = schema_differences(SCHEMA, scaled)
    assert (1, False) == (len(lines), comparable)
    assert lines[0].startswith("scaling:")
    assert ((), True) == schema_differences(SCHEMA, SCHEMA)


# -- show ------------------------------------------------------------------------------


def test_show_says_what_a_model_says(submerge, tmp_path):
    limits = Limits((0.95, 0.99), (1.5, 2.5), (9.0, 12.0), 4000)
    found = json.loads(
        submerge("model", "show", saved(tmp_path / "a", ROWS, limits=limits), "--json").out
    )

    assert ("room", 1_700_000_000_123, SCHEMA.fingerprint) == tuple(
        found[key] for key in ("group", "version", "fingerprint")
    )
    assert [f"mote-{i}" for i in range(DIM)] == [name for name, _ in found["channels"]]
    assert (300, 3, 1, 300 / 304, 2) == tuple(
        found[key] for key in ("learnt", "withheld", "lost", "coverage", "nodes")
    )
    assert [32.0, 64.0, 128.0] == found["staleness_s"]
    assert (4, None, True) == tuple(found[key] for key in ("rank", "shown", "expired"))
    values = {"spe": [1.5, 2.5], "t2": [9.0, 12.0], "linear": [], "distance": []}
    assert {"shares": [0.95, 0.99], "n": 4000} | values == found["limits"]
    assert found["kernel"] is None


def test_shares_are_of_all_variation():
    """Kept and discarded; the channels named are those of the largest part."""
    named = decoded(file_of(model_of(ROWS)), "a test")
    exact = np.linalg.eigh(np.cov(ROWS.T))
    found = figures(named, now=EPOCH + 60)

    shares = exact.eigenvalues[::-1][:4] / exact.eigenvalues.sum()
    assert shares == pytest.approx([direction.share for direction in found.directions])
    leading = np.abs(exact.eigenvectors[:, -1])
    assert f"mote-{leading.argmax()}" == found.directions[0].channels[0][0]
    assert leading.max() == pytest.approx(abs(found.directions[0].channels[0][1]), rel=1e-5)
    assert (60.0, False) == (found.age_s, found.expired)


def test_a_person_reads_it_in_lines():
    """Age, expiry, coverage, directions with their channels, limits."""
    limits = Limits((0.95,), (1.5,), (9.0,), 4000)
    named = decoded(file_of(model_of(ROWS, limits=limits)), "monday.model")
    said = figures_text(figures(named, shown=2, now=EPOCH + 7200))

    assert "monday.model" in said
    assert "2 h, made 2023-11-14 22:13:20 UTC; EXPIRED" in said
    assert "300 learnt, 3 withheld, 1 lost: coverage 98.68%" in said
    assert "4 directions, of which nodes score with 2" in said
    assert "mote-0 [°C]" in said
    assert "95.0% stay below SPE 1.5, T2 9" in said


def test_a_model_says_whether_each_channel_has_a_noise():
    """By which distances are; else alarms are raised by other statistics."""
    limits = Limits((0.95,), (1.5,), (9.0,), 4000, distance=(12.5,))
    factors = (Factors(np.full(DIM, 0.25), np.ones((DIM, 3))),)
    named, plain = (
        decoded(file_of(model_of(ROWS, limits=limits, factors=each)), "a test")
        for each in (factors, ())
    )

    assert "distances are by 3 columns of loadings" in figures_text(figures(named))
    assert "95.0% stay below distance 12.5, SPE 1.5, T2 9" in figures_text(figures(named))
    assert ([0.5] * DIM, 3) == (list(figures(named).noise), figures(named).loadings)
    without = figures_text(figures(plain))
    assert "as one of a job or of an earlier version has none" in without
    assert "scores and alarms are by SPE and T2" in without


def test_names_that_a_terminal_would_obey_are_not_printed():
    schema = replace(SCHEMA, channels=(Channel("\x1b[2Jboo"), *SCHEMA.channels[1:]))
    model = model_of(ROWS, schema=schema)

    assert "\x1b" not in figures_text(figures(decoded(file_of(model), "a test"), now=EPOCH))


def test_a_model_that_has_learnt_nothing_is_shown(submerge, tmp_path):
    """A root publishes one before the first report."""
    path = saved(tmp_path / "a", None)

    assert "0: nothing has been learnt yet" in submerge("model", "show", path).out
    assert [] == json.loads(submerge("model", "show", path, "--json").out)["directions"]


def test_the_running_one_is_shown(submerge, house):
    """With one group, it need not be named."""
    found = json.loads(submerge("model", "show", "--store", house.store, "--json").out)

    assert ("room", 300, 4) == tuple(found[key] for key in ("group", "learnt", "rank"))


def test_with_several_groups_one_has_to_be_named(submerge, tmp_path, monkeypatch):
    with House(tmp_path, groups=("room", "hall")) as house:
        stands_at_its_socket(house, monkeypatch)
        vague = submerge("model", "show", "--store", house.store)
        clear = submerge("model", "show", "--store", house.store, "--group", "hall")

    assert (2, "submerge: expected --group, one of hall, room, got none\n") == vague[::2]
    assert clear.out.startswith("model      hall, version")


# -- save ------------------------------------------------------------------------------


def test_what_is_saved_is_shown_again(submerge, house, tmp_path):
    """The model that a child gets, with the rank that nodes score with, and what merges."""
    path = tmp_path / "monday.model"
    ran = submerge("model", "save", path, "--store", house.store)

    assert (0, "") == ran[::2]
    assert f"{path}: room, version" in ran.out
    kept = read(path)
    assert house.asks("GET", "/model/room").body == codec.encode(kept.model)
    assert ShownRank(2) == kept.shown
    assert b"submerge model 3 " == path.read_bytes()[:17]
    found = json.loads(submerge("model", "show", path, "--json").out)
    assert (300, 4, 2) == (found["learnt"], found["rank"], found["shown"])
    assert {"root.db", "root.db-wal", "root.db.ballast", "monday.model"} >= {
        each.name for each in tmp_path.iterdir()
    }


def test_what_merges_is_saved_beside_the_model(submerge, house, tmp_path):
    """In full: float64, with the spare directions, and what says whose it is."""
    path = tmp_path / "monday.model"
    submerge("model", "save", path, "--store", house.store)
    learnt = read(path).learnt

    assert learnt is not None
    assert (300, 300) == (learnt.summary.weight, learnt.model.counts.learnt)
    assert learnt.model.summary.mean.tobytes() == learnt.summary.mean.tobytes()
    assert f"room {house.asks('GET', '/').json['incarnation']}" == learnt.origin
    assert () == learnt.chunks


def test_an_aggregator_of_an_earlier_version_gives_the_model_alone(
    submerge, house, tmp_path, monkeypatch
):
    """It does not know what `whole` asks for, and answers as it always has."""
    path, get = tmp_path / "monday.model", AdminClient.get
    monkeypatch.setattr(AdminClient, "get", lambda self, *words, **_: get(self, *words))
    ran = submerge("model", "save", path, "--store", house.store)

    assert 0 == ran.status
    assert (None, "room") == (read(path).learnt.summary, read(path).learnt.origin)
    assert ShownRank(2) == read(path).shown


def test_an_older_model_is_replaced_and_nothing_else_is(submerge, house, tmp_path):
    path = saved(tmp_path / "monday.model", ROWS[:20])
    assert 0 == submerge("model", "save", path, "--store", house.store).status
    assert 300 == read(path).model.counts.learnt

    path.write_text("my thesis")
    ran = submerge("model", "save", path, "--store", house.store)
    assert (2, "") == ran[:2]
    assert "exists and is no saved model: name another file, or remove it" in ran.err
    assert "my thesis" == path.read_text()


def test_a_model_is_written_whole_or_not_at_all(submerge, house, tmp_path, monkeypatch):
    """A disk that fails under way leaves the older one, and no rest."""
    path = saved(tmp_path / "monday.model", ROWS[:20])
    before = path.read_bytes()

    def fails(_: int) -> None:
        raise OSError(5, "Input/output error")

    monkeypatch.setattr(os, "fsync", fails)
    ran = submerge("model", "save", path, "--store", house.store)

    assert (2, True) == (ran.status, "cannot write the model" in ran.err)
    assert before == path.read_bytes()
    assert [] == list(tmp_path.glob("*.part")) + list(tmp_path.glob(".*.part"))


def test_a_missing_folder_is_bad_input(submerge, house, tmp_path):
    ran = submerge("model", "save", tmp_path / "no" / "a.model", "--store", house.store)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert "No such file or directory" in ran.err


# -- compare ---------------------------------------------------------------------------


def test_two_files_are_compared(submerge, tmp_path):
    first, second = (
        saved(tmp_path / "a", ROWS),
        saved(tmp_path / "b", some_rows(1, shift=0.5, spread=2.0)),
    )
    found = json.loads(submerge("model", "compare", first, second, "--json").out)

    assert (4, 4, [], True) == tuple(
        found[key] for key in ("rank", "separated", "differences", "comparable")
    )
    assert found["angles_deg"][0] < 15
    assert 4.0 == pytest.approx(found["variance_ratio"], rel=0.2)
    expected = (some_rows(1, shift=0.5, spread=2.0).mean(axis=0) - ROWS.mean(axis=0)) / ROWS.std(
        axis=0
    )
    assert expected == pytest.approx(found["shift"], rel=0.15)


def test_a_person_reads_a_comparison(submerge, tmp_path):
    first = saved(tmp_path / "a", ROWS)
    second = saved(tmp_path / "b", ROWS + np.array([0, 9.0, 0, 0, 0, 0]))
    said = submerge("model", "compare", first, second, "--rank", 2).out

    assert "degrees at most between the leading 2, which are separated" in said
    assert "degrees at rank 2" in said
    assert "1 times the first's, of all channels" in said
    shifted = said.split("shifted most")[1].splitlines()[1]
    assert "mote-1" in shifted
    assert "relations  each channel follows the others as before, to 10%" in said


def test_a_changed_relation_is_told_in_words(submerge, tmp_path):
    """Which channel follows which by how much, and between which times; as JSON, too."""
    draw = np.random.default_rng(0)
    rows = draw.normal(size=(300, 2)) @ draw.normal(size=(2, DIM))
    rows += 0.05 * draw.normal(size=rows.shape)
    changed = rows * np.where(np.arange(DIM) == 3, 0.6, 1.0)
    first, second = (saved(tmp_path / str(i), each) for i, each in enumerate((rows, changed)))
    said = submerge("model", "compare", first, second).out
    (found,) = json.loads(submerge("model", "compare", first, second, "--json").out)["relations"]

    assert ("mote-3", pytest.approx(0.6, rel=0.1)) == (found["channel"], found["ratio"])
    assert "relations  changed between 20" in said
    assert f"{found['words']} as before" in said


def test_the_running_one_is_the_second(submerge, house, tmp_path):
    """Of the same group; at the rank that its nodes score with."""
    path = saved(tmp_path / "monday.model", ROWS[:150])
    found = json.loads(submerge("model", "compare", path, "--store", house.store, "--json").out)

    assert (True, 2) == (found["comparable"], found["rank"])
    assert found["separated_deg"] < 20


def test_different_vectors_are_not_compared(submerge, tmp_path):
    """Status 1, and what sets them apart, a line each."""
    channels = (Channel("mote-0", "°F"), *SCHEMA.channels[1:])
    first = saved(tmp_path / "a", ROWS)
    second = saved(tmp_path / "b", ROWS, schema=replace(SCHEMA, channels=channels))
    ran = submerge("model", "compare", first, second)

    assert (1, "unit of mote-0: expected '°C', got '°F'\n", "") == ran
    found = json.loads(submerge("model", "compare", first, second, "--json").out)
    assert {"differences": ["unit of mote-0: expected '°C', got '°F'"], "comparable": False} == (
        found
    )


# -- bad input ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (
            ["show"],
            "expected FILE, --config FILE, --store PATH or --at URL of an aggregator, got none",
        ),
        (["show", "{a}", "--store", "x"], "--store is for the model of a running aggregator"),
        (["show", "{a}", "--group", "x"], "--group is for the model of a running aggregator"),
        (["show", "{none}"], "expected a saved model in {none}, got: No such file"),
        (
            ["show", "{other}"],
            "{other} is not a model file: expected what `submerge fit` or",
        ),
        (["compare", "{a}"], "expected a second FILE, --config FILE, --store PATH or --at URL"),
        (["compare", "{a}", "{a}", "{a}"], "expected one model or two, got 3"),
        (["compare", "{a}", "{empty}"], "{empty} has learnt nothing yet: compare a later one"),
        (["compare", "{a}", "{a}", "--rank", "0"], "0 is not in the range"),
        (["save", "{new}"], "expected --config FILE, --store PATH or --at URL of an aggregator"),
    ],
)
def test_bad_input_is_one_line(submerge, tmp_path, arguments, said):
    """Status 2: what was expected, what came."""
    paths = {name: str(tmp_path / name) for name in ("a", "none", "other", "empty", "new")}
    saved(tmp_path / "a", ROWS)
    saved(tmp_path / "empty", None)
    (tmp_path / "other").write_bytes(b"a,b\n1,2\n")
    ran = submerge("model", *(argument.format(**paths) for argument in arguments))

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert said.format(**paths) in ran.err


@settings(max_examples=30)
@given(st.data())
def test_bytes_that_are_damaged_are_refused_in_words(data):
    """Cut short, or with a byte flipped: a model, or a line; never a traceback."""
    whole = codec.encode(model_of(ROWS))
    place = data.draw(st.integers(0, len(whole) - 1))
    flipped = bytes([whole[place] ^ data.draw(st.integers(1, 255))])
    for some in (whole[:place], whole[:place] + flipped + whole[place + 1 :]):
        with suppress(UsageError):
            figures_text(figures(decoded(some, "a test", sent=True)))


def test_an_age_of_years_is_given_in_days():
    assert "730 d" == ago(2 * 365 * 86400)


# -- kernel groups -----------------------------------------------------------------------


KERNEL = replace(SCHEMA, features=RandomFourier(Gaussian(0.05), 32))


def kernel_model(rows, **fields):
    """A model of a kernel group."""
    learner = Subspaces(4, oversample=1).learner(KERNEL)
    learner.learn(rows, KERNEL.lift(rows))
    figures_text = {
        "schema": KERNEL.canonical,
        "fingerprint": KERNEL.fingerprint,
        "summary": learner.summary(),
    }
    return replace(model_of(rows), **figures_text | fields)


def test_show_says_what_the_features_are(submerge, tmp_path):
    """Kernel, gamma, how much of the features is held; directions are of the readings."""
    limits = Limits((0.95,), (1.5,), (9.0,), 4000, (7.5,))
    path = tmp_path / "a"
    path.write_bytes(file_of(kernel_model(ROWS, limits=limits)))
    found = json.loads(submerge("model", "show", path, "--json").out)
    said = submerge("model", "show", path).out

    kernel, summary = found["kernel"], kernel_model(ROWS).summary
    spec = KERNEL.features.spec() | {"gamma": 0.05}
    assert (spec, 32, 5) == (kernel["spec"], kernel["dim"], kernel["rank"])
    held = (summary.features.sigma**2).sum() / summary.features.energy
    assert held == pytest.approx(kernel["share"])
    assert {name for name, _ in found["directions"][0]["channels"]} <= {
        f"mote-{i}" for i in range(DIM)
    }
    assert "kernel     gaussian, gamma 0.05; 32 features, orthogonal" in said
    assert "SPE 1.5, T2 9 of features, SPE 7.5 of readings" in said


def test_compare_holds_features_against_features(submerge, tmp_path):
    """Two memories, each against its like; another gamma has no vectors in common."""
    first, second, other = (tmp_path / name for name in "abc")
    first.write_bytes(file_of(kernel_model(ROWS)))
    second.write_bytes(file_of(kernel_model(ROWS * 1.5)))
    alien = replace(KERNEL, features=RandomFourier(Gaussian(0.2), 32))
    figures_text = replace(
        kernel_model(ROWS), schema=alien.canonical, fingerprint=alien.fingerprint
    )
    part = figures_text.summary
    relabeled = KernelSummary(
        *(replace(each, schema=alien.fingerprint) for each in (part.features, part.linear))
    )
    other.write_bytes(file_of(replace(figures_text, summary=relabeled)))

    same = json.loads(submerge("model", "compare", first, first, "--json").out)
    moved = json.loads(submerge("model", "compare", first, second, "--json").out)
    quarantined = submerge("model", "compare", first, other)

    assert 0 == pytest.approx(same["features"]["angles_deg"][0], abs=1e-2)
    assert moved["features"]["angles_deg"][0] > 1
    assert 2.25 == pytest.approx(moved["variance_ratio"], rel=1e-4)
    assert "features" in submerge("model", "compare", first, second).out
    assert (1, "gamma: expected 0.05, got 0.2\n") == (quarantined.status, quarantined.out)
