"""page_app(): the page's own routes: its views, and how a session begins and ends.

    GET  /                     now: the fleet over time, and open alarms
    GET  /fleet, /node, /alarms, /model, /health        the other views
    GET  /login; POST /login   begin a session with a token; POST /logout ends it
    GET  /static/PATH          scripts and styles

A view is a frame with its headings; scripts fill it from `data` and from the admin API at `/api`.
"""

from __future__ import annotations

from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from submerge import PeerError, SubmergeError
from submerge_aggregator.http.serving import as_json
from submerge_aggregator.page import data
from submerge_aggregator.page.drawing import Drawing
from submerge_aggregator.page.entering import Entering
from submerge_aggregator.page.files import StaticFiles
from submerge_aggregator.page.more_views import MoreViews
from submerge_aggregator.page.watched import Watched

VIEWS = {
    "/": "now",
    "/fleet": "fleet",
    "/node": "node",
    "/alarms": "alarms",
    "/model": "model",
    "/health": "health",
}
"""The views, and their templates."""


def page_app(
    watched: Watched,
    entering: Entering,
    files: StaticFiles,
    drawing: Drawing,
    more: MoreViews | None = None,
) -> Starlette:
    """Return the page: `PageGate` stands before it.

    watched : the fleet that it shows
    more : views that only this process has
    """

    async def view(request: Request) -> Response:
        return drawing.draw(request, VIEWS[request.scope["path"]])

    async def unknown(request: Request, error: Exception) -> Response:
        status = error.status_code if isinstance(error, HTTPException) else 404
        return drawing.draw(request, "unknown", status, why=getattr(error, "detail", ""))

    return Starlette(
        routes=[
            *(Route(path, view) for path in VIEWS),
            *data.routes(watched),
            *_sessions(drawing, entering),
            *(more.routes(drawing, entering) if more else ()),
            Route("/static/{path:path}", files.answer),
        ],
        exception_handlers={HTTPException: unknown, SubmergeError: _refused},
    )


def _sessions(drawing: Drawing, entering: Entering) -> list[Route]:
    """Return the routes by which a session begins and ends."""

    async def login(request: Request) -> Response:
        back = _inside(request.query_params.get("back", "/"))
        if request.method != "POST":
            return drawing.draw(request, "login", back=back, why="")
        fields = parse_qs((await entering.body(request)).decode("utf-8", "replace"))
        back = _inside(fields.get("back", ["/"])[0])
        cookie, why = entering.enter(request, fields.get("token", [""])[0].strip())
        if cookie is None:
            return drawing.draw(request, "login", 401, back=back, why=why)
        answer = RedirectResponse(back, 303)
        entering.give(answer, cookie)
        return answer

    async def logout(request: Request) -> Response:
        answer = as_json({})
        entering.leave(request.scope["session"], answer)
        return answer

    return [
        Route("/login", login, methods=["GET", "POST"]),
        Route("/logout", logout, methods=["POST"]),
    ]


async def _refused(_: Request, error: Exception) -> Response:
    bad = isinstance(error, PeerError)  # a name in a path that is none
    return as_json({"error": str(error)}, 400 if bad else getattr(error, "status", 503))


def _inside(back: str) -> str:
    """Return where a person goes after the login: a path of the page, whatever was asked for."""
    inside = back.startswith("/") and not back.startswith(("//", "/\\")) and back.isprintable()
    return back if inside else "/"
