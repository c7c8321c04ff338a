"""A link that begins a session is not among the arguments of a process."""

from __future__ import annotations

import webbrowser
from pathlib import Path
from urllib.parse import unquote, urlsplit

from submerge_files.console import browser

LINK = "http://127.0.0.1:8473/login?once=secret&back=/"


def test_a_browser_is_started_with_a_private_file_that_leads_there(monkeypatch, tmp_path):
    opened: list[str] = []
    monkeypatch.setattr(webbrowser, "open", opened.append)
    monkeypatch.setattr(browser.tempfile, "tempdir", str(tmp_path))
    browser.show(LINK)

    (url,) = opened
    path = Path(unquote(urlsplit(url).path))
    assert "secret" not in url
    assert 0o600 == path.stat().st_mode & 0o777
    assert f'url={LINK.replace("&", "&amp;")}"' in path.read_text()
