"""What axe finds wrong in a page, as lines: its rule, how bad, and where."""

from __future__ import annotations

from typing import Any

GRAVE = ("serious", "critical")

AT_REST = """new Promise(requestAnimationFrame)
  .then(() => new Promise(requestAnimationFrame))
  .then(() => Promise.all(document.getAnimations().map((each) => each.finished.catch(() => null))))
  .then(() => null)"""
"""Colours that change, change at once in some places and little by little in others. What is drawn
again meanwhile ends an animation, too."""


def violations(page: Any) -> list[str]:
    """Return what is serious or critical."""
    from axe_playwright_python.sync_playwright import Axe

    page.evaluate(AT_REST)
    found = Axe().run(page).response["violations"]
    return [
        f"{each['id']} ({each['impact']}): {node['target']} {node.get('failureSummary', '')}"
        for each in found
        if each["impact"] in GRAVE
        for node in each["nodes"]
    ]
