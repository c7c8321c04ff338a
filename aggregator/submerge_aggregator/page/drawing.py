"""Drawing: the templates of the page, and what all of them know."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).with_name("templates")


class Drawing:
    """Draws frames of views; what is put into them is escaped.

    store : The aggregator's, for a command that makes a token; empty where strangers would read it.
    more : Names of further views, by path.
    folders : Of further templates.
    """

    def __init__(self, store: str, more: Mapping[str, str] | None = None, *folders: Path) -> None:
        self._store, self._more = store, tuple((more or {}).items())
        self._folders = (TEMPLATES, *folders)

    @cached_property
    def _templates(self) -> jinja2.Environment:
        """The templates: an aggregator at whose page people do not look does not load them."""
        import jinja2

        return jinja2.Environment(
            loader=jinja2.FileSystemLoader(self._folders),
            autoescape=True,
            trim_blocks=True,
            undefined=jinja2.StrictUndefined,
        )

    def draw(self, request: Request, name: str, status: int = 200, **more: Any) -> Response:
        """Return a template as an answer.

        more : what only this template knows
        """
        operator, session = request.scope.get("operator"), request.scope.get("session")
        known = {
            "store": self._store,
            "more": self._more,
            "here": request.scope["path"],
            "scope": "" if operator is None else operator.scope,
            "who": "" if session is None else session.name,
            "proof": request.scope.get("proof", ""),
        }
        text = self._templates.get_template(f"{name}.html").render(known | more)
        return Response(text, status, media_type="text/html")
