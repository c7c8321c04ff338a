"""What is sent to a browser: small, whole, without a word to another host, and without a hole."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from submerge.protocol.alarm_status import CAUSES, MARKS
from submerge_aggregator.page.fleet_tree import STATES
from submerge_aggregator.page.opening import FOLDER, TEMPLATES, StaticFiles

MOST_BYTES = 300_000
MOST_LINES = 400

SENT = [*sorted(FOLDER.rglob("*.js")), *sorted(FOLDER.rglob("*.css")), *sorted(TEMPLATES.iterdir())]
SCRIPTS = [path for path in SENT if path.suffix == ".js"]
NAMESPACE = "http://www.w3.org/"


def named(path: Path) -> str:
    return path.relative_to(FOLDER.parent).as_posix()


def test_the_page_is_small(capsys):
    """All scripts, styles and pictures together, as they are sent."""
    size = sum(len(each.body) for each in StaticFiles()._files.values())
    with capsys.disabled():
        print(f"\nthe page: {size:,} bytes compressed, of {MOST_BYTES:,}")  # noqa: T201

    assert size <= MOST_BYTES


@pytest.mark.parametrize("path", SENT, ids=named)
def test_a_file_is_short(path):
    """The house's rule for modules holds for scripts, styles and frames, too."""
    assert MOST_LINES >= len(path.read_text().splitlines())


@pytest.mark.parametrize("path", SENT, ids=named)
def test_no_file_names_another_host(path):
    """Scripts, fonts and pictures all come from the aggregator; a namespace is no address."""
    urls = re.findall(r"""(?:\w+:)?//[\w-]+\.[\w.-]+[^\s"')]*""", path.read_text())

    assert [] == [url for url in urls if not url.startswith(NAMESPACE)]


def test_causes_and_marks_have_the_words_of_messages():
    """A person who was woken finds the same sentence on the page."""
    lines = (FOLDER / "shared" / "causes.js").read_text()

    assert dict(re.findall(r'^  (\w+): "(.*)",$', lines, re.MULTILINE)) == CAUSES | MARKS


@pytest.mark.parametrize("path", sorted(TEMPLATES.iterdir()), ids=named)
def test_a_frame_has_no_script_and_no_style_of_its_own(path):
    """The policy of the page forbids them: they would do nothing."""
    text = path.read_text()

    assert [] == re.findall(r"<style|\sstyle=|\son\w+=|<script(?![^>]*\ssrc=)|javascript:", text)


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_a_script_puts_text_in_as_text(path):
    """What a node calls itself is never read as markup, a style attribute or a program."""
    ways = (
        r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|createContextualFragment|DOMParser"
        r"|srcdoc|\beval\(|new Function|setAttribute\(\s*[\"']style|\bstyle:"
    )
    assert [] == re.findall(ways, path.read_text())


@pytest.mark.parametrize("path", SCRIPTS, ids=named)
def test_a_script_imports_what_is_there(path):
    """A browser says nothing of a module that it does not find: the view stays empty."""
    asked = re.findall(r"""(?:from|import)\s*\(?\s*"(\.[^"]+)\"""", path.read_text())

    assert [] == [each for each in asked if not (path.parent / each).is_file()]


def test_each_state_has_a_shape():
    """A state is a word and a shape, whatever colours a person tells apart."""
    text = (FOLDER / "badges.css").read_text()
    shapes = dict(re.findall(r"\.badge\.(\w+)(?:::before, \.badge\.\w+)?::before \{ (.*) \}", text))

    assert set() == set(STATES) - set(shapes)
    assert len(STATES) == len({shapes[state] for state in STATES})
