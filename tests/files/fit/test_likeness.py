"""`submerge fit --like MODEL`: a history is learnt so that the model's fleet can merge it."""

from __future__ import annotations

import shlex
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from submerge import Schema
from submerge.pca.whole_scatter import WholeScatter
from submerge.schema import Channel, Scaling
from submerge_files import model_file
from support.commands import shell
from support.pump_files import NAMES, readings, write


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Return what runs `submerge` with a line of words, where there are two histories."""
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "march.csv", readings(2500))
    write(tmp_path / "april.csv", readings(2500, seed=4, first=2500, level=0.3))
    submerge = shell(monkeypatch, capsys)
    return lambda words: submerge(*shlex.split(words))


def under(path: Path, **changes: object) -> Schema:
    """Save a model under another schema, as a fleet may have it; return that."""
    saved = model_file.read(path)
    schema = replace(saved.schema, **changes)
    model = replace(
        saved.model, schema=schema.canonical, fingerprint=schema.fingerprint, summary=None
    )
    bare = replace(
        saved.learnt, model=model, summary=None, moments=None, sketches=None, monitors=()
    )
    model_file.save(path, bare)
    return schema


def scatter(path: str) -> WholeScatter:
    return model_file.read(Path(path)).learnt.summary


def test_the_schema_is_the_models(run, tmp_path):
    """Its channels in its order, with their units, its scaling, and a mean for each node."""
    run("fit march.csv -o fleet.model --no-drill")
    order = tuple(reversed(NAMES))
    schema = under(
        tmp_path / "fleet.model",
        channels=tuple(Channel(name, "bar") for name in order),
        scaling=Scaling(tuple(range(len(NAMES))), (2.0,) * len(NAMES)),
        center="own",
    )
    done = run("fit april.csv -o april.model --like fleet.model --no-drill")

    assert (0, "") == (done.status, done.err)
    assert schema == model_file.read(tmp_path / "april.model").schema
    rows = readings(2500, seed=4, first=2500, level=0.3)[:, ::-1]
    expected = np.cov(rows.T, bias=True) / 4
    found = scatter("april.model")
    assert found.weight > 2000
    np.testing.assert_allclose(found.scatter / found.weight, expected, rtol=0.05)


def test_two_machines_about_one_mean_differ_by_their_levels(run, tmp_path):
    """As in a fleet whose center is its own: nothing of what is between them is left out."""
    run("fit march.csv -o fleet.model --no-drill")
    under(tmp_path / "fleet.model", center="fleet")
    write(tmp_path / "low.csv", readings(2500, seed=1, level=0.0))
    write(tmp_path / "high.csv", readings(2500, seed=1, level=9.0))
    words = "fit low.csv high.csv --node-by file --no-drill --keep-all -o"
    assert 0 == run(f"{words} apart.model").status
    assert 0 == run(f"{words} one.model --like fleet.model").status
    one, apart = scatter("one.model"), scatter("apart.model")
    scales = model_file.read(Path("one.model")).schema.scaling.scale
    between = 2500 * 2 * (9.0 / 2 / np.array(scales)) ** 2

    assert one.energy > apart.energy
    assert one.energy >= 0.9 * between.max()


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ("--skip flow", "expected the channels of fleet.model, got none for flow"),
        ("--columns pressure,flow", "got none for"),
    ],
)
def test_other_columns_are_refused(run, columns, message):
    """One line, and no model."""
    run("fit march.csv -o fleet.model --no-drill")
    done = run(f"fit april.csv -o april.model --like fleet.model {columns}")

    assert 2 == done.status
    assert message in done.err
    assert not Path("april.model").exists()
