"""The changelog: each change has a file of a valid name, and towncrier builds the next version."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from click.testing import CliRunner
from towncrier.build import _main as build

import submerge

ROOT = Path(__file__).parents[1]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
TYPES = {each["directory"]: each["name"] for each in SETTINGS["type"]}
NAME = re.compile(rf"\d+\.[a-z0-9-]+\.({'|'.join(TYPES)})\.md")
FRAGMENTS = sorted(set((ROOT / "changes").iterdir()) - {ROOT / SETTINGS["template"]})
RELEASED = re.findall(
    r"^## (\d+)\.(\d+)\.(\d+) \(\d{4}-\d\d-\d\d\)$",
    (ROOT / SETTINGS["filename"]).read_text(encoding="utf-8"),
    re.MULTILINE,
)


def test_each_change_is_a_file_of_a_valid_name():
    """ISSUE.WORD.TYPE.md: two changes of one issue have files of their own."""
    assert ["added", "changed", "fixed", "removed", "security"] == list(TYPES)
    assert [] == [path.name for path in FRAGMENTS if not NAME.fullmatch(path.name)]


def test_each_change_is_one_paragraph_for_users():
    """It becomes one point of a list, so it has no list of its own and ends with a full stop."""
    for path in FRAGMENTS:
        text = path.read_text(encoding="utf-8")
        assert re.fullmatch(r"[^\s*#-].*\.\n", text), path.name


def test_the_next_version_builds_and_holds_every_change():
    """In a draft, which writes nothing."""
    before = (ROOT / SETTINGS["filename"]).read_bytes()
    arguments = ["--draft", "--dir", str(ROOT), "--version", "1.2.3", "--date", "2030-01-01"]
    done = CliRunner().invoke(build, arguments)

    assert 0 == done.exit_code, done.output
    assert "## 1.2.3 (2030-01-01)" in done.output
    for path in FRAGMENTS:
        # Links lead from `changes/`, and then from the changelog.
        text = path.read_text(encoding="utf-8").strip().replace("](../", "](")
        assert f"* {text}\n" in done.output, path.name
        assert f"### {TYPES[path.name.split('.')[-2]]}\n" in done.output
    assert before == (ROOT / SETTINGS["filename"]).read_bytes()


def test_the_version_is_the_newest_of_the_changelog():
    """A release changes both; in between, what is new stands in `changes/` alone."""
    versions = [tuple(map(int, each)) for each in RELEASED]

    assert sorted(set(versions), reverse=True) == versions
    assert submerge.__version__ == ".".join(map(str, versions[0]))
