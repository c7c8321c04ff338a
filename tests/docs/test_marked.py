"""Pages that are made from measurements: in the site, figures of other code are marked."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def marked():
    """The extension, as Sphinx loads it."""
    spec = importlib.util.spec_from_file_location("marked", ROOT / "docs" / "_ext" / "marked.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_site_has_the_page_as_its_command_prints_it(marked):
    """Marks can only be added: every line's beginning is that of the committed page."""
    source = ["what is committed"]
    marked.mark(None, "benchmarks/evidence", source)

    assert source[0].startswith("# Evidence\n")
    assert source[0].count("\n") >= (ROOT / "benchmarks" / "evidence.md").read_text().count("\n")


def test_other_pages_are_left_alone(marked):
    """They are no page of measurements."""
    source = ["what is committed"]
    marked.mark(None, "docs/index", source)

    assert ["what is committed"] == source


def test_figures_of_other_code_are_marked_on_their_page(marked):
    """A reader of the site sees a sentence in place of the mark; a mark of now says nothing."""
    script = "benchmarks/calls.py"
    now = marked._recorded().mark_of(script)
    source = [f"{now}\n<!-- measured {script} 0123456789abcdef at fedcba -->"]
    marked.mark(None, "benchmarks/results", source)

    first, second = source[0].splitlines()
    assert now == first
    assert second.startswith(
        f"**Older than its code:** `{script}`, or what it imports, has changed"
    )


def test_every_page_has_its_command(marked):
    """Both are there."""
    for page, command in marked.MADE.items():
        assert (ROOT / f"{page}.md").exists()
        assert (ROOT / command).exists()
