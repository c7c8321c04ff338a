"""`submerge drill`: what files and a model say about faults, for people and for machines."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from submerge import Channel, Scaling, Schema
from submerge.history.knowledge import Learnt
from submerge.judge.prepare import prepare
from submerge.judge.score import ScoringModel, score
from submerge.protocol.messages import Counts, Model
from submerge.protocol.summaries import Subspaces
from submerge.stats.block_maxima import BlockMaxima
from submerge.stats.quantile_sketch import FINE, QuantileSketch, empty
from submerge.stats.smoothing import ewma
from submerge_aggregator.questions.views import ShownRank
from submerge_files.model_file import save
from submerge_proto.wire import codec
from support.commands import Ran, shell

WIDTH, RANK, ALONE, SCALE = 5, 2, 4, 2.5
NAMES = tuple(f"t{i}" for i in range(WIDTH))
SCALING = Scaling((20.0,) * WIDTH, (SCALE,) * WIDTH)
SCHEMA = Schema(tuple(Channel(name, "C") for name in NAMES), scaling=SCALING, center="own")
SUMMARIES = Subspaces(RANK, oversample=1)
CAUSES = np.random.default_rng(1).standard_normal((RANK, WIDTH))
CAUSES[:, ALONE] = 0
HOUR = 60


def draw(n: int, seed: int) -> np.ndarray:
    """Rows in their units; the last channel has nothing to do with the others."""
    rng = np.random.default_rng(seed)
    noise = rng.normal(0, 0.2 + 0.8 * (np.arange(WIDTH) == ALONE), (n, WIDTH))
    return SCALE * (rng.standard_normal((n, RANK)) @ CAUSES + noise) + 20


def a_model(*, hours: int = 3000) -> Model:
    """What a fleet knows after so many hours."""
    learner, seen = SUMMARIES.learner(SCHEMA), SCHEMA.scaled(draw(4000, 2))
    learner.learn(seen, seen)
    held = learner.summary()
    summary, factors = SUMMARIES.directions(held), SUMMARIES.factors(held)
    scoring = ScoringModel(SUMMARIES, summary, None, WIDTH, factors)
    scores = score(prepare(draw(HOUR * hours, 3), SCHEMA, fill=None), scoring).distance
    highest = ewma(scores)[: HOUR * (hours - 1)].reshape(-1, HOUR).max(axis=1)
    maxima = BlockMaxima(
        *3 * [empty(FINE)],
        longest=hours,
        ewma=QuantileSketch.of(highest, FINE),
    )
    model = Model(
        *("g", 17, SCHEMA.canonical, SCHEMA.fingerprint, summary, None),
        *(Counts(4000), 2, (1.0, 1.0, 1.0)),
        created=1.7e9,
        expires=2.7e9,
        maxima=maxima,
        factors=factors,
    )
    return codec.decode(codec.kind_of(model), codec.encode(model))


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """A model, and two files of rows."""
    folder = tmp_path_factory.mktemp("drill")
    save(folder / "monday.model", Learnt(a_model()), ShownRank(RANK))
    for i in range(2):
        text = [",".join(NAMES), *(",".join(f"{x:.6f}" for x in row) for row in draw(400, 10 + i))]
        (folder / f"pump-{i}.csv").write_text("\n".join(text) + "\n")
    return folder


@pytest.fixture
def drill(folder: Path, monkeypatch, capsys) -> Callable[..., Ran]:
    """Run `submerge drill` by that model."""
    run = shell(monkeypatch, capsys)

    def drill(*args: object, status: int = 0) -> Ran:
        done = run("drill", *args, "--model", folder / "monday.model")
        assert status == done.status, done.err
        return done

    return drill


def test_it_says_sizes_in_the_unit_and_which_channel_is_blind(
    folder: Path, drill: Callable[..., Ran]
):
    """In a fifth of the channel's scale for those that share causes: they were .2 scales noisy."""
    done = drill(folder / "pump-0.csv", "--period", "1m", "--json")
    answer = json.loads(done.out)
    channels = {each["channel"]: each for each in answer["channels"]}

    assert [NAMES[ALONE]] == [name for name, each in channels.items() if each["blind"]]
    assert {"C"} == {each["unit"] for each in channels.values()}
    for name, each in channels.items():
        size = each["bias"]["median"]
        assert (1.5 if name == NAMES[ALONE] else 0.3) * SCALE < size < 4 * SCALE, name
    # 60 rows of a minute.
    assert 60 == answer["files"][0]["within"]


def test_the_sizes_that_it_says_raise_alarms_in_a_table_too(
    folder: Path, drill: Callable[..., Ran]
):
    """Several files: the median, and the worst; it ends with the promise."""
    files = [str(folder / f"pump-{i}.csv") for i in range(2)]
    done = drill(*files, "--period", "1m")

    assert "t0 [C]" in done.out
    assert "in brackets the worst" in done.out
    assert "blind" in done.out.split("t4 [C]")[1].split("\n")[0]
    assert "at 1 false per week" in done.out


def test_a_rate_that_is_higher_finds_smaller_faults(folder: Path, drill: Callable[..., Ran]):
    """Sooner, for less: the price of fewer false alarms."""
    found = {}
    for at_most in ("1 false per week", "1 false per hour"):
        out = drill(folder / "pump-0.csv", "--at-most", at_most, "--period", "1m", "--json").out
        found[at_most] = [each["bias"]["median"] for each in json.loads(out)["channels"]]

    assert all(
        a > b for a, b in zip(found["1 false per week"], found["1 false per hour"], strict=True)
    )


def test_rows_in_another_state_are_not_tried(
    folder: Path, drill: Callable[..., Ran], tmp_path: Path
):
    """A column of text says which: the answer is that of the others alone."""
    head, *lines = (folder / "pump-0.csv").read_text().splitlines()
    running = tmp_path / "running.csv"
    running.write_text("\n".join([head, *lines[:300]]) + "\n")
    states = ["RUN"] * 300 + ["STOP"] * 100
    mixed = [f"{line},{state}" for line, state in zip(lines, states, strict=True)]
    (tmp_path / "all.csv").write_text("\n".join([f"{head},State", *mixed]) + "\n")
    asked = ("--rows", "30", "--json")
    found = [
        json.loads(drill(path, *asked, *more).out)["channels"]
        for path, more in ((running, ()), (tmp_path / "all.csv", ("--when", "State == RUN")))
    ]

    assert found[0] == found[1]


def test_it_draws_a_picture(folder: Path, drill: Callable[..., Ran]):
    """A PNG."""
    drill(folder / "pump-0.csv", "--rows", "30", "--plot", str(folder / "drill.png"))

    assert (folder / "drill.png").read_bytes().startswith(b"\x89PNG")


def test_the_model_file_is_as_before(folder: Path, drill: Callable[..., Ran]):
    """Not a byte of it changes."""
    before = (folder / "monday.model").read_bytes()
    drill(folder / "pump-0.csv")

    assert before == (folder / "monday.model").read_bytes()


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["--at-most", "sometimes"], "NUMBER false per"),
        (["--at-most", "off"], "raises no alarms"),
        (["--period", "soon"], "soon"),
        (["--plot", "picture.txt"], "to end in .png"),
    ],
)
def test_bad_input_is_refused_in_one_line(
    folder: Path, drill: Callable[..., Ran], args: list[str], expected: str
):
    """Exit status 2, and what to do."""
    done = drill(folder / "pump-0.csv", *args, status=2)

    assert expected in done.err
    assert 1 == done.err.count("\n")


def test_limits_that_are_provisional_are_said_to_be(folder: Path, drill: Callable[..., Ran]):
    """The group was monitored for months, not for a thousand years."""
    done = drill(folder / "pump-0.csv", "--at-most", "0.001 false per year")

    assert "limits are provisional" in done.err
    assert "about one false alarm in" in done.err


def test_few_rows_are_refused_by_the_name_of_their_file(
    folder: Path, drill: Callable[..., Ran], tmp_path: Path
):
    """There is no room for a fault in them."""
    few = tmp_path / "few.csv"
    few.write_text("\n".join((folder / "pump-0.csv").read_text().splitlines()[:6]) + "\n")

    assert "few.csv: a drill needs more rows" in drill(str(few), status=2).err
