"""MoreViews: views that the process which serves a page adds to it, and no aggregator has."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from starlette.routing import Route

from submerge_aggregator.page.drawing import Drawing
from submerge_aggregator.page.entering import Entering


class MoreViews(NamedTuple):
    """Views behind the same gate as all others.

    names : what the page's navigation shows, by path
    templates : a folder
    routes : returns their routes, given what draws templates and what begins sessions
    """

    names: dict[str, str]
    templates: Path
    routes: Callable[[Drawing, Entering], list[Route]]
