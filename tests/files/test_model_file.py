"""Model files: whatever reads one says what it holds; earlier forms are refused in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from submerge import UsageError
from submerge.history.knowledge import Learnt
from submerge_aggregator.questions.views import ShownRank
from submerge_files import model_file
from submerge_files.model_file import bytes_of, read, save
from submerge_files.score.model import of_file
from submerge_operate.fleet.model_figures import contents, contents_text
from submerge_proto.files import learnt as learnt_file
from submerge_proto.wire import codec
from support import golden_learnt
from support import golden_parts as parts
from support.commands import shell
from support.golden_kept import FOLDER
from support.golden_parts import LINEAR
from support.wire import reported

FORMS = [*golden_learnt.LEARNT]


@pytest.fixture
def submerge(monkeypatch, capsys):
    return shell(monkeypatch, capsys)


@pytest.fixture(params=[1, 2])
def early(request, tmp_path) -> Path:
    """A model of a form before: a message alone, and with a line before it."""
    path, data = tmp_path / "early.model", codec.encode(parts.model("a", summary=None, first=1))
    line = b'submerge model 2 {"rank": 2, "linear_rank": null}\n'
    path.write_bytes(data if request.param == 1 else line + data)
    return path


def test_an_earlier_form_is_one_line(submerge, early):
    """It says which form, when it was written, and what to do; and the file stays."""
    before = early.read_bytes()
    for command in (("show", early), ("compare", early, FOLDER / "form_3.model")):
        ran = submerge("model", *command)

        assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
        assert "(form " in ran.err
        assert "of it, from before 28 November 2026: fit or save it again)" in ran.err
    with pytest.raises(UsageError, match="is no saved model: name another file"):
        save(early, golden_learnt.of_a_fleet())
    assert before == early.read_bytes()


def test_what_an_aggregator_sends_may_be_a_message_alone():
    """Its rank is the aggregator's to say."""
    model = replace(parts.model("pumps", summary=parts.linear(), first=9), rank=0)
    found = model_file.decoded(codec.encode(model), "the aggregator", sent=True)

    assert reported(model) == reported(found.model)
    assert (None, None, LINEAR.fingerprint) == (found.shown, found.learnt, found.schema.fingerprint)


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_shown(submerge, name):
    """For a person and for a program."""
    path = FOLDER / name
    text, found = submerge("model", "show", path), submerge("model", "show", path, "--json")

    assert (0, 0) == (text.status, found.status)
    assert json.loads(found.out)["contents"] is not None
    assert "\nfile" in text.out


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_compared_with_itself(submerge, name):
    """It is as near to itself as can be."""
    assert 0 == submerge("model", "compare", FOLDER / name, FOLDER / name).status


def test_what_a_file_holds_is_said_in_one_line():
    """Of files: chunks, machines, rows and their time; of a fleet: which."""
    of_files, of_a_fleet, alone = (
        contents_text(contents(each())) for each in golden_learnt.LEARNT.values()
    )

    assert (
        "a whole scatter to merge further; 16,374 rows of 2 machines, in 4 chunks, 2023-07-22"
        " 04:26:40 UTC to 2023-07-22 04:34:00 UTC" == of_files
    )
    assert f"directions to merge further; of the fleet presses {parts.ROOT}" == of_a_fleet
    assert "the model alone; of the fleet pumps" == alone


def test_rows_without_times_have_no_span():
    one = Learnt(
        parts.model("a", summary=None, first=1), chunks=(golden_learnt.chunk(1, "m", "", np.nan),)
    )

    assert "the model alone; 4,095 rows of one machine, in one chunk" == contents_text(
        contents(one)
    )


def test_what_was_saved_is_read_again(tmp_path):
    """The same, with the rank that nodes score with; and the length is that of the file."""
    path, learnt = tmp_path / "a.model", golden_learnt.of_a_fleet()
    size = save(path, learnt, ShownRank(2, 1))
    saved = read(path)

    assert path.stat().st_size == size
    assert ShownRank(2, 1) == saved.shown
    assert reported(learnt) == reported(saved.learnt)
    assert saved.model is saved.learnt.model


def test_a_damaged_file_is_one_line(submerge, tmp_path):
    """It says to copy it again, and that it is the file's fault."""
    path = tmp_path / "a.model"
    data = bytearray((FOLDER / "form_3.model").read_bytes())
    data[-7] ^= 4
    path.write_bytes(data)
    ran = submerge("model", "show", path)

    assert (2, "", 1) == (ran.status, ran.out, ran.err.count("\n"))
    assert "is not a model file (damaged: its bytes are not those that were written" in ran.err


@pytest.mark.parametrize("reads", [bytes_of, read, lambda path: of_file(path, None)])
def test_a_file_that_is_too_long_is_not_read_to_its_end(reads, tmp_path, monkeypatch):
    """A device without an end would fill the memory."""
    path = tmp_path / "a.model"
    path.write_bytes((FOLDER / "form_3.model").read_bytes())
    monkeypatch.setattr(learnt_file, "MOST_BYTES", 100)
    with pytest.raises(UsageError, match="expected a saved model of at most 100 bytes"):
        reads(path)


def test_what_cannot_be_saved_leaves_the_older_file(tmp_path):
    """It is refused before anything is written."""
    path, learnt = tmp_path / "a.model", golden_learnt.below_a_root()
    save(path, learnt, None)
    before = path.read_bytes()
    with pytest.raises(UsageError, match="expected what can be saved"):
        save(path, replace(learnt, lags=0), None)

    assert before == path.read_bytes()
    assert model_file.read(path).shown is None
