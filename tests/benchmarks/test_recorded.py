"""Records of rooms: tables with what they were measured with."""

from __future__ import annotations

import json
import types

import numpy as np
import pytest

import recorded
from report import Table, command_of

TABLE = Table("rows", {"n": "d", "is": ".2f"}, [(np.int64(3), np.float64(0.5)), (4, None)], "Why.")


@pytest.fixture
def room(monkeypatch):
    """A room's module; no pools of threads are asked."""
    monkeypatch.setattr(recorded.blas, "check", lambda: ["one"])
    module = types.ModuleType("a_room", "What it measures.\n\nHow it does.")
    module.__file__ = "benchmarks/a_room.py"
    return module


def test_a_record_is_read_back_as_its_tables(room):
    """Through JSON, numbers of NumPy included."""
    made = json.loads(recorded.record(room, command_of(room, "--n 3"), [TABLE], quick=True))

    assert ("What it measures", "How it does.") == (made["title"], made["about"])
    assert ("python benchmarks/a_room.py --n 3", True) == (made["command"], made["quick"])
    assert TABLE.markdown == Table.of_record(made["tables"][0]).markdown


def test_what_is_measured_is_what_was_loaded(room):
    """And what the room starts; but not what only writes results down."""
    room.STARTS = ("client/submerge_client",)
    made = json.loads(recorded.record(room, command_of(room), [TABLE], quick=False))

    assert "benchmarks/blas.py" in made["measures"]
    assert "client/submerge_client" in made["measures"]
    assert not set(recorded.WRITES) & set(made["measures"])
    assert not [each for each in made["measures"] if each.startswith(".venv")]
    assert not recorded.changed(made)


def test_a_file_that_has_gone_is_a_change():
    """Not an error: the page can still be made."""
    assert recorded.changed({"measures": ["benchmarks/gone.py"], "measured": ""})


@pytest.fixture
def repository(tmp_path, monkeypatch):
    """A script that imports a core that imports another part of it, and starts a program."""
    for name, text in {
        "benchmarks/a.py": "def room():\n    import submerge.pca.engine\nSTARTS = ('client/x',)\n",
        "core/submerge/__init__.py": "",
        "core/submerge/pca/__init__.py": "",
        "core/submerge/pca/engine.py": "import submerge.schema\n",
        "core/submerge/schema.py": "",
        "core/submerge/river.py": "",
        "client/x/y.py": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(recorded, "ROOT", tmp_path)
    recorded._imports.cache_clear()
    yield tmp_path
    recorded._imports.cache_clear()


@pytest.mark.parametrize(
    "changed",
    ["benchmarks/a.py", "core/submerge/pca/engine.py", "core/submerge/schema.py", "client/x/y.py"],
)
def test_a_page_that_is_older_than_its_code_is_named(repository, changed):
    """Whether the script has changed, or what it imports, through others too, or starts."""
    page = repository / "benchmarks/page.md"
    page.write_text(f"# Figures\n\n{recorded.mark_of('benchmarks/a.py')}\n\n1.5\n")
    (repository / "core/submerge/river.py").write_text("1  # not of these figures")
    assert [] == recorded.outdated()

    (repository / changed).write_text(f"{(repository / changed).read_text()}\nx = 2\n")
    recorded._imports.cache_clear()
    assert ["older than its code: benchmarks/page.md (benchmarks/a.py)"] == recorded.outdated()
    assert "**Older than its code:** `benchmarks/a.py`" in recorded.marked(page.read_text())


def test_every_page_of_figures_has_marks():
    """Of scripts that are there; the other pages are made from JSON, which has hashes itself."""
    pages = {page.stem: page.read_text() for page in (recorded.ROOT / "benchmarks").glob("*.md")}
    marks = {name: recorded.MARK.findall(text) for name, text in pages.items()}
    scripts = {script for found in marks.values() for script, _, _ in found}

    assert {"index", "evidence", "papers"} == {name for name, found in marks.items() if not found}
    assert all((recorded.ROOT / script).is_file() for script in scripts)


def test_a_table_of_other_things_is_refused(room):
    """What JSON cannot hold is no figure."""
    with pytest.raises(TypeError, match="expected a number or text"):
        recorded.record(room, "", [Table("rows", {"n": "", "is": ""}, [(1, {2})])], quick=False)
