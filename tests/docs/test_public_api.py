"""The public names are those that the API pages list, no more and no fewer.

`docs/api/NAME.rst` is the page of the public package NAME: the pages are the list of public
packages, here and on the site.
"""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from types import ModuleType

import pytest

API = Path(__file__).parents[2] / "docs" / "api"
PAGES = {page.stem: page for page in sorted(API.glob("*.rst"))}
LISTED = re.compile(
    r"^\.\. (?:auto(?:class|function|exception)|py:(class|data)):: (\w+)$"
    r"(?P<body>(?:\n(?: .*)?$)*)",
    re.MULTILINE,
)


def listed(page: str) -> list[str]:
    """The names that a page documents, in its order."""
    return [entry[2] for entry in LISTED.finditer(page)]


def by_hand(page: str) -> dict[str, str]:
    """The names that a page describes in words of its own, with these words."""
    return {
        entry[2]: re.sub(r"^ +:.*$", "", entry["body"], flags=re.MULTILINE).strip()
        for entry in LISTED.finditer(page)
        if entry[1]
    }


def offered(package: ModuleType) -> set[str]:
    """What a user of the package meets without an underscore: its names, modules left out.

    `dir` has those too that are imported when they are used.
    """
    return {
        name
        for name in dir(package)
        if not name.startswith("_") and not isinstance(getattr(package, name), ModuleType)
    } - {"annotations"}


@pytest.fixture(params=sorted(PAGES))
def package(request) -> ModuleType:
    """Each public package, imported."""
    return importlib.import_module(request.param)


def test_a_page_lists_exactly_the_public_names(package):
    """The page of a package and its `__all__` hold the same names, each once."""
    assert sorted(package.__all__) == sorted(listed(PAGES[package.__name__].read_text()))


def test_nothing_else_can_be_mistaken_for_public(package):
    """A name of a public package is in its `__all__`, or begins with an underscore."""
    assert set(package.__all__) - {"__version__"} == offered(package)


def test_every_public_name_is_documented(package):
    """Each name has a docstring of its own, or words on the page."""
    said = by_hand(PAGES[package.__name__].read_text())
    for name in package.__all__:
        value = getattr(package, name)
        documented = isinstance(value, type) or callable(value)
        text = (value.__dict__.get("__doc__") if isinstance(value, type) else value.__doc__) or ""
        # A dataclass without a docstring gets its signature for one.
        made_up = text.startswith(f"{name}(")
        assert said.get(name) or (documented and text.strip() and not made_up), name


def test_every_page_is_in_the_list_of_packages():
    """The index of the API leads to each package, and to nothing that has no page."""
    index = (API / "index.md").read_text()
    (tree,) = re.findall(
        r"^```\{toctree\}\n(?::[^\n]*\n)*(.*?)^```", index, re.DOTALL | re.MULTILINE
    )

    assert sorted(PAGES) == sorted(tree.split())


def test_what_is_listed_is_read_off_a_page():
    """Directives count, indented words describe a name, options and prose do not."""
    page = (
        ".. autofunction:: merge\n\n.. autoclass:: SAPCA\n   :members:\n\n`spe` is none.\n\n"
        ".. py:data:: Array\n   :type: int\n\n   An array.\n"
    )

    assert ["merge", "SAPCA", "Array"] == listed(page)
    assert {"Array": "An array."} == by_hand(page)
