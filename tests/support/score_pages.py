"""What the page is told of scores over time, made up: as GET /data/scores/G answers."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

MINUTE_S = 60


def scores_of(
    levels: dict[str, Sequence[int]], *, at: float, under: str = "", silent: Sequence[str] = ()
) -> dict[str, Any]:
    """Return an answer.

    levels : by node, a byte a minute, up to the minute before `at`
    """
    minutes = max(map(len, levels.values()), default=0)
    first_s = int(at // MINUTE_S - minutes) * MINUTE_S
    nodes = [
        {"under": under, "node": node, "levels": base64.b64encode(bytes(each)).decode()}
        for node, each in levels.items()
    ]
    return {
        "at": at,
        "first_s": first_s,
        "step_s": MINUTE_S,
        "nodes": nodes,
        "silent": list(silent),
        "more": False,
    }


def serves_scores(page: Any, answer: dict[str, Any]) -> list[str]:
    """Have a browser's page get an answer from nowhere; return the addresses that it asks for."""
    asked: list[str] = []

    def fulfil(route: Any) -> None:
        asked.append(route.request.url)
        route.fulfill(body=json.dumps(answer), content_type="application/json")

    page.route("**/data/scores/**", fulfil)
    return asked
