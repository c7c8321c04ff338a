"""The records of a client: their file is of the first form that can tell all of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from unittest import mock

import pytest

from submerge import UsageError
from submerge.protocol.machine import Keep
from submerge_client import checkpoint
from submerge_client.checkpoint import HEAD, CheckpointFile, RecordStore
from support.golden_kept import CHECKPOINTS, FOLDER, records_of


def newest_form(path: Path) -> int:
    """The form of the newest slot."""
    raw = path.read_bytes()
    heads = [HEAD.unpack_from(raw, start) for start in (0, len(raw) // 2)]
    return max(heads, key=lambda head: head[2])[1]


def kept(path: Path, several: dict) -> None:
    """Write these records, by a process of their own."""
    with closing(RecordStore(CheckpointFile(path))) as store:
        store.load()
        store.keep(Keep(several))


@pytest.mark.parametrize("key", [("checkpoint",), ("past",)])
def test_an_earlier_version_refuses_a_whole_scatter_by_name_and_deletes_nothing(key, tmp_path):
    """To it the record would be damage: it would delete it, and lose its readings unsaid."""
    path = tmp_path / "node.state"
    kept(path, {key: records_of("client_narrow.checkpoint")[key]})
    before = path.read_bytes()

    refused = pytest.raises(UsageError, match=r"later submerge \(form 2, .*move the file away")
    with mock.patch.object(checkpoint, "FORM", 1), closing(CheckpointFile(path)) as file, refused:
        RecordStore(file).load()
    assert before == path.read_bytes()


def test_what_an_earlier_version_can_read_stays_of_form_1(tmp_path):
    """The form follows what the records hold, also those that another process wrote."""
    path = tmp_path / "node.state"
    narrow, linear = map(records_of, ("client_narrow.checkpoint", "client_linear.checkpoint"))
    forms = []
    for records in (linear, narrow, {("past",): None}, {("checkpoint",): None}, linear):
        kept(path, records)
        forms.append(newest_form(path))

    assert [1, 2, 2, 1, 1] == forms


@pytest.mark.parametrize("name", CHECKPOINTS)
def test_golden_checkpoints_are_of_both_forms(name):
    """Of each form that is read there is one."""
    assert (2 if name == "client_narrow.checkpoint" else 1) == newest_form(FOLDER / name)
