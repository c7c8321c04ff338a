"""The check that keeps a built site from asking other hosts for anything."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

SOURCE = Path(__file__).parents[2] / "docs" / "_ext" / "offline.py"


@pytest.fixture
def offline():
    """The extension, as Sphinx loads it."""
    spec = importlib.util.spec_from_file_location("offline", SOURCE)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.html", '<script src="https://cdn.example/a.js"></script>'),
        ("a.html", '<img src="//cdn.example/a.png">'),
        ("a.html", '<img srcset="a.png 1x, https://cdn.example/b.png 2x">'),
        ("a.html", '<link rel="stylesheet" href="http://cdn.example/a.css">'),
        ("a.html", "<style>body { background: url('https://cdn.example/a.png') }</style>"),
        ("a.html", '<p style="background: url(https://cdn.example/a.png)">'),
        ("a.css", '@import "https://fonts.example/a.css";'),
        ("a.css", "@font-face { src: url(//fonts.example/a.woff2) }"),
    ],
)
def test_a_site_that_loads_from_elsewhere_is_refused(offline, tmp_path, name, text):
    """Scripts, styles, images and fonts of another host end the build, which names the file."""
    (tmp_path / name).write_text(text)

    with pytest.raises(ValueError, match=name):
        offline.check(type("App", (), {"outdir": tmp_path}), None)


def test_links_and_own_files_are_fine(offline, tmp_path):
    """A reader may click on another host, and the site may load what is its own."""
    (tmp_path / "a.html").write_text(
        '<a href="https://example.org">out</a><link rel="canonical" href="https://example.org">'
        '<script src="_static/a.js"></script><img src="a.png">'
    )
    (tmp_path / "a.css").write_text("body { background: url(a.png) }")

    offline.check(type("App", (), {"outdir": tmp_path}), None)

    assert ["_static/a.js", "a.png"] == offline.loaded(tmp_path / "a.html")
