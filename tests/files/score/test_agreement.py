"""A client's score lines and `submerge score` say the same of the same rows."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from submerge import Channel, Scaling, Schema
from submerge.client.node import MONITOR, ClientNode
from submerge.features import Gaussian, RandomFourier
from submerge.history.knowledge import Learnt
from submerge.judge.prepare import prepare
from submerge.judge.score import ScoringModel, score
from submerge.protocol.desired_state import DesiredState
from submerge.protocol.machine import Flush, Keep, Now, Reading, Received, Scored, Start
from submerge.protocol.messages import Counts, Model
from submerge.protocol.settings import AlarmSettings, ClientSettings
from submerge.protocol.summaries import Subspaces
from submerge.stats.score_limits import Limits
from submerge_aggregator.questions.views import ShownRank
from submerge_client.checkpoint import CheckpointFile, RecordStore
from submerge_client.score_outputs.lines import ScoredBlock, ScoreLines
from submerge_files.model_file import save
from submerge_proto.wire import codec
from support.commands import shell

WIDTH, RANK, LINEAR_RANK = 12, 3, 4
NAMES = tuple(f"x{i}" for i in range(WIDTH))
SCALING = Scaling(tuple(10.0 * i for i in range(WIDTH)), tuple(0.5 + i / 4 for i in range(WIDTH)))
SCHEMA = Schema(tuple(map(Channel, NAMES)), scaling=SCALING, center="own")
KERNEL = replace(SCHEMA, features=RandomFourier(Gaussian(0.02), 64))
SUMMARIES = Subspaces(RANK, oversample=2, linear_rank=LINEAR_RANK)
SHARES = (0.5, 0.95, 0.99, 0.999)
CAUSES = np.random.default_rng(1).standard_normal((RANK, WIDTH))
PERIOD_S, EPOCH = 600.0, 1.7e9
ROWS = 3000


def draw(n: int, seed: int, *, offset: float = 0.0) -> np.ndarray:
    """Rows in their units; with an offset, of a node that stands elsewhere than the fleet."""
    rng = np.random.default_rng(seed)
    scaled = rng.standard_normal((n, RANK)) @ CAUSES + rng.normal(0, 0.3, (n, WIDTH)) + offset
    return scaled * SCALING.scale + SCALING.offset


def half_missing(rows: np.ndarray, seed: int) -> np.ndarray:
    """Each row without half of its channels, whichever these are."""
    rng = np.random.default_rng(seed)
    rows = rows.copy()
    for row in rows:
        row[rng.permutation(WIDTH)[: WIDTH // 2]] = np.nan
    return rows


def fleet(schema: Schema) -> Model:
    """What the fleet knows, as it arrives; limits are of whole rows that it had not seen."""
    learner = SUMMARIES.learner(schema)
    seen = draw(4000, 2)
    learner.learn(schema.scaled(seen), schema.lift(seen))
    summary = SUMMARIES.directions(learner.summary())
    fresh = prepare(draw(20_000, 3), schema, fill=None)
    scores = score(fresh, ScoringModel(SUMMARIES, summary, None, WIDTH))
    spe, t2, linear = (
        () if each is None else tuple(map(float, np.quantile(each, SHARES)))
        for each in (scores.spe, scores.t2, scores.linear)
    )
    limits = Limits(SHARES, spe, t2, 20_000, linear)
    model = Model(
        *("g", 17, schema.canonical, schema.fingerprint, summary, limits),
        *(Counts(4000), 2, (1.0, 1.0, 1.0)),
        created=EPOCH,
        expires=EPOCH + 1e9,
    )
    back = codec.decode(codec.kind_of(model), codec.encode(model))
    assert isinstance(back, Model)
    return back


class Client:
    """A real client: its node, its disk and its score lines; rows of ten minutes."""

    def __init__(self, model: Model, schema: Schema, state: Path, *, lags: int = 1) -> None:
        alarms = AlarmSettings(period_s=PERIOD_S)
        self.settings = ClientSettings("c", "g", "root", fills_gaps=True, alarms=alarms, lags=lags)
        self.model, self.schema, self.state, self.row = model, schema, state, 0
        self.lines: list[dict] = []
        self.start({})

    def start(self, kept: dict) -> None:
        """Begin a process with what one before it kept."""
        self.node = ClientNode(self.settings, self.schema, SUMMARIES, np.random.default_rng(0))
        self.step(Start(kept))
        self.step(Received(self.model))

    def step(self, event: object) -> None:
        writer = ScoreLines(self.schema, contributions=3, out=self._hear)
        now = Now(PERIOD_S * self.row, EPOCH + PERIOD_S * self.row)
        for effect in self.node.step(event, now):
            if isinstance(effect, Scored):
                writer.write(ScoredBlock(effect, self.schema, self.first, now.wall))
            if isinstance(effect, Keep) and MONITOR in effect.records:
                self.kept = effect.records

    def _hear(self, lines: bytes) -> None:
        self.lines += [json.loads(line) for line in lines.splitlines()]

    def reads(self, rows: np.ndarray, block: int) -> list[dict]:
        """Let rows come, and return a line for each."""
        self.lines, begin = [], self.row
        for i in range(0, len(rows), block):
            part = rows[i : i + block]
            self.first = self.row - begin
            self.row += len(part)
            self.step(Reading(part))
        return self.lines

    def pauses(self) -> None:
        """Learn nothing from here on, and keep what is known in the state file."""
        self.step(Flush())
        monitor = self.kept[MONITOR]
        disk = RecordStore(CheckpointFile(self.state))
        disk.keep(Keep({MONITOR: replace(monitor, desired=DesiredState("c", 1, paused=True))}))
        disk.close()
        disk = RecordStore(CheckpointFile(self.state))
        self.start(dict(disk.load()))
        disk.close()


@pytest.fixture
def agree(monkeypatch, capsys, tmp_path) -> Callable[..., tuple[list[dict], list[dict]]]:
    """Return what a client says of rows, and what the command does with that client's mean."""
    submerge = shell(monkeypatch, capsys)

    def both(schema: Schema, rows: np.ndarray, *, offset: float) -> tuple[list[dict], list[dict]]:
        model = fleet(schema)
        client = Client(model, schema, tmp_path / "c.state")
        client.reads(draw(600, 4, offset=offset), 10)  # four days: its mean is settled
        client.pauses()
        live = client.reads(rows, 7)
        save(tmp_path / "m", Learnt(model), ShownRank(RANK, LINEAR_RANK))
        with (tmp_path / "x.csv").open("w", newline="") as file:
            write = csv.writer(file).writerow
            write(NAMES)
            for row in rows.tolist():
                write(["" if value != value else repr(value) for value in row])
        options = ("--model", tmp_path / "m", "--mean", tmp_path / "c.state", "--json")
        ran = submerge("score", tmp_path / "x.csv", *options)
        assert 0 == ran.status
        return live, [json.loads(line) for line in ran.out.splitlines()]

    return both


def disturbed(offset: float) -> np.ndarray:
    """Half of the channels missing everywhere; here and there one that is there is far off."""
    rows = half_missing(draw(ROWS, 5, offset=offset), 6)
    rng = np.random.default_rng(7)
    for i in range(0, ROWS, 40):
        j = rng.choice(np.flatnonzero(~np.isnan(rows[i])))
        rows[i, j] += 8.0 * SCALING.scale[j]
    return rows


def same(live: list[dict], files: list[dict], *, linear: bool) -> None:
    """Hold each line of a client to that of the command."""
    # Features are float32: how many rows are lifted at once changes their last digits.
    near = 1e-6 if linear else 1e-12
    assert list(range(len(live))) == [line["row"] for line in live]
    assert list(range(1, len(live) + 1)) == [line["row"] for line in files]
    for here, there in zip(live, files, strict=True):
        assert ("linear" in here) == ("linear" in there) == linear
        for name in {"spe", "t2", "linear"} & set(here):
            assert here[name] == pytest.approx(there[name], rel=near, abs=near)
        for name in ("over", "over_spe", "over_t2", "over_linear"):
            assert here.get(name) == there.get(name)
        assert list(here["top"]) == list(there["top"])
        assert here["top"] == pytest.approx(there["top"], abs=2e-4)
        assert here["filled"] == pytest.approx(there["filled"], rel=1e-8)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("schema", "offset"),
    [(SCHEMA, 2.0), (KERNEL, 0.1), (replace(SCHEMA, center="fleet"), 0.0)],
    ids=["own", "kernel", "fleet"],
)
def test_a_clients_lines_and_the_command_agree_row_by_row(agree, schema, offset):
    """Values to rounding, limits and channels exactly, with half of the channels missing."""
    live, files = agree(schema, disturbed(offset), offset=offset)

    assert ROWS == len(live)
    same(live, files, linear=schema is KERNEL)
    # Not because nothing was over a limit, nor all that was blamed alike.
    assert {None, 0.95, 0.99, 0.999} <= {line.get("over") for line in live}
    assert {0.95, 0.99} & {line.get("over_t2") for line in live}
    assert WIDTH == len({next(iter(line["top"])) for line in live})


def test_a_few_rows_agree_as_well(agree):
    """The same claim of the first hundred rows, for the quick tests."""
    live, files = agree(SCHEMA, disturbed(2.0)[:100], offset=2.0)

    assert 100 == len(live)
    same(live, files, linear=False)


@pytest.mark.slow
def test_a_row_with_gaps_is_over_a_limit_about_as_often_as_a_whole_one(agree):
    """Limits are of whole rows: what was filled takes nothing from how often they are passed."""
    rows = draw(ROWS, 5, offset=2.0)
    whole, _ = agree(SCHEMA, rows, offset=2.0)
    gappy, _ = agree(SCHEMA, half_missing(rows, 6), offset=2.0)
    counts = [sum("over" in line for line in lines) for lines in (whole, gappy)]
    limit = fleet(SCHEMA).limits.spe[SHARES.index(0.95)]
    raw = sum(line["spe"] > limit for line in gappy)

    # 5 % of 3,000 are 150, and chance makes twelve of a difference.
    assert 110 < counts[0] < 190
    assert raw < 20 < counts[1] < 190
