"""What has moved since the last entry of the history of ratios."""

from __future__ import annotations

import ratios


def test_what_moves_by_more_than_fifteen_percent_is_named():
    before = {"a": 1.0, "b": 2.0, "c": 1.0, "gone": 1.0}
    now = {"a": 1.16, "b": 1.6, "c": 1.1, "new": 9.0}

    assert ["a: 1.00 before, 1.16 now", "b: 2.00 before, 1.60 now"] == ratios.moved(before, now)


def test_a_page_lists_the_last_entries(tmp_path, monkeypatch):
    monkeypatch.setattr(ratios, "PAGE", tmp_path / "ratios.md")
    monkeypatch.setattr(ratios, "PICTURE", tmp_path / "ratios.png")
    entries = [
        {"commit": f"c{i}", "date": "2026-12-01", "cpu": "x", "load": 0.1, "ratios": {"a": 1.0 + i}}
        for i in range(7)
    ]
    ratios.draw(entries)

    assert (tmp_path / "ratios.png").stat().st_size
    assert "| a | 3.00 | 4.00 | 5.00 | 6.00 | 7.00 |" in (tmp_path / "ratios.md").read_text()
