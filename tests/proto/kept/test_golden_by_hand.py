"""Engines, journals of alarms and saved models: golden files that were written out by hand."""

from __future__ import annotations

import json

import pytest

from submerge import EnergyRank, FixedRank, SapcaRank, dumps, loads
from submerge.protocol.alarm_status import Alarm
from submerge_client.alarms.journal import Delivered, Journal
from submerge_files import model_file
from support import golden_by_hand, golden_engines, golden_learnt
from support.golden_kept import BY_HAND, ENGINES, FOLDER, of_that_version
from support.golden_parts import LINEAR
from support.wire import reported

# -- engines -------------------------------------------------------------------------

RULES = {
    "engine_sapca.npz": SapcaRank(start=3, alpha=0.015625, beta=0.25, lowest=2, highest=4, hold=5),
    "engine_energy.npz": EnergyRank(low=0.5, high=0.75, start=3, lowest=2, highest=4, hold=8),
    "engine_fixed.npz": FixedRank(start=12),
    "engine_form_2.npz": FixedRank(start=3),
}


@pytest.mark.parametrize("file", ENGINES)
def test_an_engine_is_what_it_was(file):
    """Setting by setting, as they were written down by hand."""
    engine = loads((FOLDER / file).read_bytes())
    about = golden_engines.ABOUT[file]

    assert RULES[file] == engine.rule
    assert about["oversample"] == engine.oversample
    assert about["forgetting_factor"] == engine.forgetting_factor
    assert about["center"] is engine.center
    assert (about["block_size"] or 500) == engine.block_size
    assert about["memory"] == engine.memory
    assert about["exact"] == engine.exact
    assert about["dtype"] == engine.dtype.name
    assert about["n_samples_seen"] == engine.n_samples_seen
    assert about["fallbacks"] == engine.fallbacks


@pytest.mark.parametrize("file", ["engine_sapca.npz", "engine_energy.npz", "engine_form_2.npz"])
def test_an_engine_shows_what_it_showed(file):
    """So many directions, of the schema that it was saved with."""
    engine = loads((FOLDER / file).read_bytes())

    assert golden_engines.ABOUT[file]["target"] == engine.rank
    assert LINEAR.fingerprint == engine.subspace.schema


@pytest.mark.parametrize("file", ENGINES)
def test_an_engine_is_saved_alike(file):
    """Every entry of the file, to the last bit; its text says the same."""
    golden = (FOLDER / file).read_bytes()
    was, now = (golden_engines.entries(data) for data in (golden, dumps(loads(golden))))
    said, says = (json.loads(entries["about"].tobytes()) for entries in (was, now))

    assert said == says
    assert list(was) == list(now)
    del was["about"]
    for name, array in was.items():
        assert (array.dtype, array.shape) == (now[name].dtype, now[name].shape)
        assert array.tobytes() == now[name].tobytes()
    text = (FOLDER / f"{file}.json").read_text(encoding="utf-8")
    assert json.loads(text) == golden_engines.text_of(golden)


# -- what sinks have told of alarms --------------------------------------------------

OPEN = Alarm(
    node="pump-3",
    number=1_700_086_390_000,
    began=1_700_086_390.25,
    peaked=1_700_086_395.5,
    ended=0.0,
    worst=3.25,
    cause="spe",
    top=(("bearing heat", 0.5), ("flow", 0.25), ("läuft", 0.125)),
    version=1_700_086_000_000,
    withheld=60,
    verdict="rejected",
)
LINES, WEBHOOK = "lines pumps", "webhook pumps"


def test_a_journal_says_what_it_said(tmp_path):
    """What a sink has told it does not tell again."""
    path = tmp_path / "alarms.journal"
    path.write_bytes((FOLDER / path.name).read_bytes())
    journal = Journal(path, {LINES, WEBHOOK})
    lines = journal.delivered(LINES)

    assert OPEN == lines.open[0]
    assert ["spe", "t2", "linear", "channel", "stuck"] == [each.cause for each in lines.open]
    assert ["rejected", "accepted", "", "", ""] == [each.verdict for each in lines.open]
    assert ("pump-3-19aa41f2c30", "pump-4-18bcfe56801") == lines.over
    assert Delivered(open=(), over=("pump-3-19aa41f2c30",)) == journal.delivered(WEBHOOK)


def test_a_journal_is_written_alike(tmp_path):
    """Every name in it is a byte."""
    path = tmp_path / "alarms.journal"
    path.write_bytes((FOLDER / path.name).read_bytes())
    journal = Journal(path, {LINES, WEBHOOK})
    was = journal.delivered(WEBHOOK)
    journal.note(WEBHOOK, Delivered())
    assert (FOLDER / path.name).read_bytes() != path.read_bytes()
    journal.note(WEBHOOK, was)

    assert (FOLDER / path.name).read_bytes() == path.read_bytes()


# -- saved models --------------------------------------------------------------------


@pytest.mark.parametrize("file", golden_learnt.LEARNT)
def test_what_was_learnt_is_what_it_was(file):
    """Field by field and to the last bit, as it was built by hand."""
    named, ranks = model_file.read(FOLDER / file), golden_learnt.RANKS[file]
    assert named.shown is not None
    assert named.learnt is not None

    assert reported(golden_learnt.LEARNT[file]()) == reported(named.learnt)
    assert ranks.get("rank", 2) == named.shown.rank
    assert ranks.get("linear_rank") == named.shown.linear_rank
    assert named.learnt.model is named.model


@pytest.mark.parametrize("file", golden_learnt.LEARNT)
def test_what_was_learnt_is_saved_alike(file, tmp_path):
    """Read and written again, it is the same file."""
    named = model_file.read(FOLDER / file)
    assert named.learnt is not None
    with of_that_version():
        model_file.save(tmp_path / file, named.learnt, named.shown)

    assert (FOLDER / file).read_bytes() == (tmp_path / file).read_bytes()


@pytest.mark.parametrize("file", BY_HAND)
def test_what_was_written_by_hand_is_still_that(file):
    """The same code gives the same bytes."""
    with of_that_version():
        assert (FOLDER / file).read_bytes() == BY_HAND[file]()


def test_the_journal_stands_here_in_words():
    """Nothing in it follows a class that is renamed."""
    said = json.loads(golden_by_hand.JOURNAL)

    assert {"form", "sinks"} == set(said)
    assert {"open", "over"} == set(said["sinks"][LINES])
    assert {
        *("node", "number", "began", "peaked", "ended", "worst"),
        *("cause", "top", "version", "withheld", "verdict"),
    } == set(said["sinks"][LINES]["open"][0])
