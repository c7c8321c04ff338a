"""The file in which a sensor keeps how long its channels are usually silent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from submerge_client.sensors.grid import FIRST_S, MOST_S, WRITE_S, KeptSilences, Silences

CHANNELS = ("bath/t", "hall/t")


class Remembering:
    """A sensor's silences and their file, in one life of the process."""

    def __init__(self, path: Path | None, channels: tuple[str, ...] = CHANNELS) -> None:
        self.notes = list[str]()
        self.silences = Silences(len(channels), 10.0)
        self.kept = KeptSilences(
            path,
            channels,
            self.silences,
            note=lambda what, /, **_: self.notes.append(what),
            now=0.0,
        )

    @property
    def ages_s(self) -> list[float]:
        return self.silences.ages_s.tolist()


def test_a_restart_knows_the_silences_by_name(tmp_path) -> None:
    """Also where channels were added, and their order changed."""
    path = tmp_path / "habits"
    before = Remembering(path)
    before.silences.end(0, 600.0)
    before.kept.write()
    after = Remembering(path, ("new/t", "bath/t"))

    assert [FIRST_S, 1800.0] == after.ages_s
    assert 0o600 == path.stat().st_mode & 0o777


def test_it_is_written_seldom_and_only_if_something_changed(tmp_path) -> None:
    """Cards wear."""
    path = tmp_path / "habits"
    life = Remembering(path)
    life.kept.write(2 * WRITE_S)
    unchanged = path.exists()
    life.silences.end(0, 600.0)
    life.kept.write(2 * WRITE_S + 1)
    early = path.exists()
    life.kept.write(3 * WRITE_S)

    assert [False, False, True] == [unchanged, early, path.exists()]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\xff",
        b"[]",
        b"[" * 100_000,
        b'{"form": 2, "longest_s": {"bath/t": 600}}',
        b'{"form": 1, "longest_s": []}',
        *(
            json.dumps({"form": 1, "longest_s": {"bath/t": wrong}}).encode()
            for wrong in (-1.0, 0, 2 * MOST_S, "12", None, [])
        ),
    ],
)
def test_a_damaged_file_is_as_none_and_is_replaced(tmp_path, content) -> None:
    """It is only a habit."""
    path = tmp_path / "habits"
    path.write_bytes(content)
    life = Remembering(path)
    ages_s = life.ages_s
    life.silences.end(0, 600.0)
    life.kept.write()

    assert [FIRST_S, FIRST_S] == ages_s
    assert [1800.0, FIRST_S] == Remembering(path).ages_s


def test_a_folder_that_cannot_be_written_is_said_once(tmp_path) -> None:
    """And stops nothing."""
    life = Remembering(tmp_path / "missing" / "habits")
    for hours in (1, 2):
        life.silences.end(0, 3600.0 * hours)
        life.kept.write()

    assert ["silences not written"] == life.notes


def test_without_a_path_nothing_is_kept() -> None:
    """As in a trial."""
    life = Remembering(None)
    life.silences.end(0, 600.0)
    life.kept.write()

    assert [] == life.notes
