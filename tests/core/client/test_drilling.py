"""A drill at a client: in slices, on rows in bounded memory, changing nothing."""

from __future__ import annotations

import math

import numpy as np
import pytest

from submerge.client.drill import ClientDrill, DrillTask, normals
from submerge.client.monitor import MOST_NUMBERS, MOST_ROWS, RecentRows
from submerge.judge.prepare import Block
from submerge.protocol.machine import Now
from submerge.protocol.settings import AlarmSettings
from support.drilled import ALONE, DIM, SixChannels


def test_a_drill_that_is_asked_for_says_what_is_blind():
    """Slice by slice; the log has a line at its end, and the answer is at hand."""
    client = SixChannels()

    assert ["drill asked for by operator"] == client.ask(7)
    (note,), ticks = client.drill()
    answer = client.intake.drilled
    assert "drill done" == note.what
    assert (DIM, 1, ["x3"]) == tuple(note.facts[k] for k in ("channels", "blind", "which"))
    assert 7 == answer.task.number
    assert [i == ALONE for i in range(DIM)] == [each.blind for each in answer.channels]
    assert ticks > 4 * DIM


def test_it_is_asked_for_once():
    """The same number again begins nothing; a later one does."""
    client = SixChannels()
    client.ask(7)
    client.drill()
    client.ask(7)
    assert math.inf == client.intake.drill_due_at
    client.ask(8)
    assert client.now.steady == client.intake.drill_due_at


def test_a_drill_changes_nothing_that_the_client_keeps():
    """Neither alarms, mean, typical errors and hours, nor a byte of the model."""
    from submerge_proto.kept import records
    from submerge_proto.wire import codec

    client = SixChannels()
    client.ask(7)

    def state() -> tuple[bytes, bytes, bytes]:
        key, kept = ("lookout",), client.intake.kept
        rows = client.intake.monitor.recent_rows.rows
        return records.pack(key, kept), codec.encode(client.model), rows.tobytes()

    before = state()
    client.drill()

    assert before == state()


def test_without_a_model_it_says_so():
    """As a line of the log."""
    client = SixChannels(rows=0)
    assert ["drill asked for by operator", "drill not done"] == client.ask(7)


def test_with_few_rows_it_says_so_too():
    """There is no room for a fault."""
    client = SixChannels(rows=6)
    client.ask(7)
    (note,), _ = client.drill()

    assert "drill not done" == note.what
    assert "needs" in note.facts["why"]


@pytest.mark.parametrize("width", [1, 12, 400, 1000])
def test_recent_rows_are_the_newest_in_bounded_memory(width: int):
    """Oldest first, gaps as gaps, whatever the sizes of blocks were."""
    ring, rng, seen = RecentRows(width), np.random.default_rng(0), []
    for n in (1, 7, 300, 3, 50):
        rows, gaps = rng.standard_normal((n, width)), rng.random((n, width)) < 0.1
        seen.append(np.where(gaps, np.nan, rows))
        ring.add(Block(np.zeros(n, dtype=np.int8), rows, rows, gaps))
    held = ring.rows

    assert len(held) == min(MOST_ROWS, MOST_NUMBERS // width)
    newest = np.concatenate(seen)[-len(held) :].astype(np.float32)
    assert np.array_equal(newest, held.astype(np.float32), equal_nan=True)


def test_normal_numbers_from_bytes_are_standard_normal():
    """To the error of ten thousand."""
    drawn = normals(np.random.default_rng(0), 10_001)

    assert (10_001,) == drawn.shape
    assert abs(drawn.mean()) < 0.04
    assert abs(drawn.std() - 1) < 0.03


def test_an_error_ends_a_drill():
    """It is not tried again and again."""
    task = DrillTask(1, "", None, np.zeros((0, DIM)), {}, AlarmSettings())
    drill = ClientDrill(task, np.random.default_rng(0), Now(0.0, 0.0))
    drill.step(Now(0.0, 0.0))

    assert drill.done
    assert drill.answer is None
