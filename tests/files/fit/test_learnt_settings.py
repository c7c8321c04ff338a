"""`init --from`: a history, or its model, becomes configurations that a fleet starts from."""

from __future__ import annotations

import shlex
import subprocess
import sys
from collections import deque
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from submerge import Channel, Scaling, Schema
from submerge.features import Gaussian, RandomFourier
from submerge.nodes import (
    AggregatorNode,
    ClientNode,
    Now,
    Publish,
    Reading,
    Received,
    Send,
    Start,
    Tick,
)
from submerge.protocol.history import History
from submerge.protocol.machine import Event, Note, PushHistory
from submerge_aggregator import config as aggregator_config
from submerge_client.config import client_config
from submerge_files import model_file
from support.commands import Ran, shell
from support.pump_files import readings, write

Run = Callable[[str], Ran]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """Return what runs `submerge` with a line of words."""
    submerge = shell(monkeypatch, capsys)
    return lambda words: submerge(*shlex.split(words))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with a history of a day, which is the current one."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "history.csv", readings(1440))
    return tmp_path


def client_of(run: Run, source: str) -> client_config.ClientConfig:
    """Return the client that `init --from` describes, by its own loader."""
    done = run(f"client init --from {source}")
    assert (0, "") == (done.status, done.err)
    Path("client.toml").write_text(done.out, encoding="utf-8")
    return client_config.load("client.toml", {})


def root_of(run: Run, source: str) -> aggregator_config.AggregatorConfig:
    """Return the root that `init --from` describes, by its own loader."""
    done = run(f"aggregator init --from {source}")
    assert (0, "") == (done.status, done.err)
    Path("root.toml").write_text(done.out, encoding="utf-8")
    return aggregator_config.load("root.toml", {})


def changed(path: Path, **fields: object) -> None:
    """Save a model again, with other fields of its own."""
    saved = model_file.read(path)
    assert saved.learnt is not None
    learnt = replace(saved.learnt, model=replace(saved.learnt.model, **fields), summary=None)
    bare = replace(learnt, moments=None, sketches=None, monitors=(), chunks=())
    model_file.save(path, bare)


def with_schema(path: Path, schema: Schema) -> None:
    """Save a model again, without what it has learnt, for another schema."""
    changed(
        path,
        group="north.pumps",
        schema=schema.canonical,
        fingerprint=schema.fingerprint,
        summary=None,
        factors=(),
        maxima=None,
        limits=None,
        rank=0,
    )


@pytest.mark.slow
@pytest.mark.usefixtures("folder")
@pytest.mark.parametrize("source", ["history.csv", "plant.model"])
def test_client_root_and_model_have_one_fingerprint(run: Run, source: str):
    """A model of `fit` is taken by a group of the same fingerprint only."""
    run("fit history.csv -o plant.model --no-drill")
    saved = model_file.read(Path("plant.model"))
    client, root = client_of(run, source), root_of(run, source)
    group = root.plans[client.group]

    assert saved.schema.fingerprint == client.built_schema.fingerprint
    assert group.schema is not None
    assert saved.schema.fingerprint == group.schema.fingerprint
    assert root.node == client.parent
    assert saved.model.rank == client.summary.rank == root.groups[client.group].summary.rank
    assert client.alarms.period_s == 60.0


@pytest.mark.usefixtures("folder")
def test_a_model_is_not_learnt_again(run: Run, monkeypatch: pytest.MonkeyPatch):
    """The same configuration, by what the model says alone."""
    learnt = run("client init --from history.csv").out
    run("fit history.csv -o plant.model --no-drill")
    monkeypatch.delattr("submerge_files.fit.learnt_settings.learnt")

    assert learnt == run("client init --from plant.model").out.replace("plant.model", "history.csv")


def driven(client: ClientNode, root: AggregatorNode, rows: np.ndarray) -> None:
    """Give a client a row a second, and carry messages between the two; nothing fails."""
    nodes: dict[str, ClientNode | AggregatorNode] = {"machine-1": client, "root": root}
    todo: deque[tuple[str, Event]] = deque((name, Start({})) for name in nodes)
    for second, row in enumerate(rows):
        todo.append(("machine-1", Reading(row[None])))
        while todo:
            name, event = todo.popleft()
            for effect in nodes[name].step(event, Now(steady=second, wall=1.7e9 + second)):
                if isinstance(effect, Send):
                    todo.append((effect.to, Received(effect.message)))
                elif isinstance(effect, Publish):
                    todo.append(("machine-1", Received(effect.message)))
            if not todo:
                todo.extend((name, Tick()) for name in nodes if nodes[name].wakes_at <= second)


@pytest.mark.usefixtures("folder")
def test_the_client_joins_the_root_which_learns_its_rows(run: Run):
    """Both as their configurations say; no row waits for a scaling."""
    config, served = client_of(run, "history.csv"), root_of(run, "history.csv")
    rng = np.random.default_rng(0)
    client = ClientNode(config.settings, config.built_schema, config.summaries, rng)
    root = AggregatorNode(served.settings, served.plans, np.random.default_rng(1))
    driven(client, root, readings(1000, seed=7))

    ledger = root.ledger("machines")
    assert {"machine-1"} == {node for node, _ in ledger.rows}
    assert ledger.counts().learnt > 500
    assert client.model is not None
    assert config.built_schema.fingerprint == client.model.fingerprint


def taken(served: aggregator_config.AggregatorConfig, path: Path) -> list[str]:
    """Give a root that has just started a model's history; return its notes on it."""
    root = AggregatorNode(served.settings, served.plans, np.random.default_rng(1))
    root.step(Start({}), Now(steady=0.0, wall=1.8e9))
    learnt = model_file.read(path).learnt
    assert learnt is not None
    assert learnt.summary is not None
    history = History(learnt.model, learnt.summary, learnt.sketches, learnt.chunks)
    (group,) = served.groups
    effects = root.step(PushHistory(group, history), Now(steady=1.0, wall=1.8e9 + 1))
    return [effect.what for effect in effects if isinstance(effect, Note)]


@pytest.mark.usefixtures("folder")
def test_the_root_takes_the_history_of_its_model(run: Run):
    """It needs no `fit --like`: the group has the model's schema from the beginning."""
    run("fit history.csv -o plant.model --no-drill")

    assert ["history taken"] == taken(root_of(run, "plant.model"), Path("plant.model"))


@pytest.mark.slow
def test_odd_names_of_a_hundred_channels(folder: Path, run: Run):
    """As they are in the headings, in the same order; and all directions of the model."""
    rng = np.random.default_rng(0)
    odd = [
        'a "b"',
        "back\\slash",
        "# no comment",
        "Ölstand",
        "a.b",
        "=",
        "[x]",
        "{y}",
        "\U0001f321",
    ]
    names = [*odd, *(f"channel {i}" for i in range(100 - len(odd)))]
    rows = rng.normal(size=(600, 30)) @ rng.normal(size=(30, 100)) + rng.normal(size=(600, 100))
    cells = [",".join('"{}"'.format(name.replace('"', '""')) for name in names)]
    cells += [",".join(f"{number:.4f}" for number in row) for row in rows]
    (folder / "wide.csv").write_text("\n".join(cells) + "\n", encoding="utf-8")
    client, root = client_of(run, "wide.csv"), root_of(run, "wide.csv")
    run("fit wide.csv -o wide.model --no-drill")
    saved = model_file.read(folder / "wide.model")

    assert names == [channel.name for channel in client.schema.sensed]
    assert saved.schema.fingerprint == client.built_schema.fingerprint
    assert root.groups["machines"].schema == client.schema
    assert saved.model.summary is not None
    assert saved.model.summary.parts[0].rank == client.summary.kept
    assert client.alarms.period_s is None
    assert ["history taken"] == taken(root, folder / "wide.model")


def test_rows_an_hour_apart_are_no_silence(folder: Path, run: Run):
    """Otherwise the watchdog would end the client between any two rows."""
    text = (folder / "history.csv").read_text().splitlines()
    hourly = [text[0], *text[1::60]] + [
        line.replace("2026-03-02", f"2026-03-{day:02}") for day in (3, 4) for line in text[1::60]
    ]
    (folder / "hourly.csv").write_text("\n".join(hourly) + "\n")
    client = client_of(run, "hourly.csv")

    assert (3600.0, 36000.0) == (client.alarms.period_s, client.silence_s)


def test_machines_give_the_node_its_name(folder: Path, run: Run):
    """And each node its own mean, as the model has it."""
    write(folder / "east.csv", readings(1440, seed=1, level=5.0))
    write(folder / "west.csv", readings(1440, seed=2))
    run("fit east.csv west.csv -o both.model --node-by file --no-drill")
    client = client_of(run, "both.model")

    assert ("east", "own") == (client.node, client.schema.center)
    assert "# The history has east, west.\n" in Path("client.toml").read_text()


def test_a_model_of_a_fleet_with_lags(folder: Path, run: Run):
    """Its group, and its channels once; without a rank, the root chooses."""
    run("fit history.csv -o plant.model --no-drill")
    names = ("a", "b", "a-1", "b-1")
    schema = Schema(tuple(map(Channel, names)), center="own", half_life=86400.0)
    with_schema(folder / "plant.model", schema)
    client, root = client_of(run, "plant.model"), root_of(run, "plant.model")

    assert ["north.pumps"] == list(root.groups) == [client.group]
    assert (2, 2) == (len(client.schema.channels), client.schema.lags)
    assert "auto" == client.summary.rank
    assert schema.fingerprint == client.built_schema.fingerprint


def test_a_fleet_that_holds_a_history_keeps_its_group(folder: Path, run: Run):
    """Its model has the chunks of the history, which do not make it one of files."""
    run("fit history.csv -o plant.model --no-drill")
    path = folder / "plant.model"
    held = model_file.read(path).learnt
    assert held is not None
    of_fleet = replace(held, model=replace(held.model, group="pumps"), origin="pumps 1-2")
    model_file.save(path, of_fleet)

    assert ["pumps"] == list(root_of(run, "plant.model").groups)
    assert "pumps" == client_of(run, "plant.model").group


@pytest.mark.parametrize(
    ("schema", "why"),
    [
        (Schema(4), "plant.model has no names of channels"),
        (
            Schema((Channel("a"), Channel("b")), features=RandomFourier(Gaussian(0.5), 64)),
            "plant.model has a kernel",
        ),
        (
            Schema(tuple(map(Channel, ("a", "a-1"))), scaling=Scaling((0.0, 0.0), (1.0, 2.0))),
            "plant.model scales a channel's lags in different ways",
        ),
    ],
)
def test_what_no_configuration_says_is_refused(folder: Path, run: Run, schema: Schema, why: str):
    """In one line, and nothing is written."""
    run("fit history.csv -o plant.model --no-drill")
    with_schema(folder / "plant.model", schema)
    done = run("client init --from plant.model")

    assert (2, "", 1) == (done.status, done.out, done.err.count("\n"))
    assert why in done.err


def test_options_of_reading_are_those_of_fit(folder: Path, run: Run):
    """A hint that names an option of `fit` says so."""
    text = (folder / "history.csv").read_text().splitlines()
    (folder / "history.csv").write_text("\n".join([*text, text[5]]) + "\n")
    done = run("aggregator init --from history.csv")

    assert (2, "", 1) == (done.status, done.out, done.err.count("\n"))
    assert "(--sort); it is an option of submerge fit, whose model --from takes as well" in done.err

    days = [f"03/0{day}/2026 10:{minute:02}" for day in (2, 3) for minute in range(60)]
    rows = [f"{day},{i % 7},{i % 5}" for i, day in enumerate(days)]
    (folder / "dates.csv").write_text("\n".join(["time,flow,temp", *rows]) + "\n")
    said = run("aggregator init --from dates.csv").err
    assert "--time-format '%d/%m/%Y" in said
    assert "; it is an option of submerge fit" in said


@pytest.mark.usefixtures("folder")
@pytest.mark.slow
@pytest.mark.parametrize("package", ["msgspec", "google.protobuf"])
def test_a_missing_package_is_one_line(package: str):
    code = (
        f"import sys; sys.modules[{package!r}] = None;"
        "sys.argv[1:] = 'client init --from history.csv'.split();"
        "from submerge_operate.cli import main; main()"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)

    assert (2, "", 1) == (done.returncode, done.stdout, done.stderr.count("\n"))
    assert "pip install 'submerge[files]'" in done.stderr
