"""The demo's view: its processes, what a viewer does with them, and the line that stays true.

    GET  /demo                  the view; it begins a session of the demo's own token
    GET  /data/demo             what it shows
    POST /demo/NAME/VERB        kill, stop or start a process

They stand behind the gate of all other views. All who use this machine get the session, without a
token to type: the demo's processes are theirs. An order still needs the
cookie, our `Origin` and the session's proof, so a page of another site cannot give one.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import msgspec
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from submerge_aggregator.http.serving import as_json
from submerge_aggregator.page.drawing import Drawing
from submerge_aggregator.page.entering import Entering
from submerge_aggregator.page.files import StaticFiles
from submerge_aggregator.page.more_views import MoreViews
from submerge_lab.demo.page.fleet import Verb
from submerge_lab.demo.page.state import DemoState

HERE = Path(__file__).parent

AGAIN = "again"
"""In the address after a session has begun: a browser that keeps no cookies is not led in rings."""

Orders = SimpleQueue[tuple[Verb, str]]


def demo_views(state: Callable[[], DemoState], orders: Orders, secret: str) -> MoreViews:
    """Return the demo's views.

    state : returns what is shown now
    orders : where a viewer's orders go
    secret : the demo's token
    """

    def routes(drawing: Drawing, entering: Entering) -> list[Route]:
        files = StaticFiles(HERE / "static")

        async def view(request: Request) -> Response:
            if request.scope["session"] is None and AGAIN not in request.query_params:
                cookie, _ = entering.enter(request, secret)
                if cookie is not None:
                    answer = RedirectResponse(f"/demo?{AGAIN}=1", 303)
                    entering.give(answer, cookie)
                    return answer
            return drawing.draw(request, "demo")

        async def data(_: Request) -> Response:
            return Response(msgspec.json.encode(state()), media_type="application/json")

        return [
            Route("/demo", view),
            Route("/data/demo", data),
            Route("/demo/{name}/{verb}", _ordering(state, orders), methods=["POST"]),
            Route("/static/demo/{path:path}", files.answer),
        ]

    return MoreViews({"/demo": "Demo"}, HERE / "templates", routes)


def _ordering(state: Callable[[], DemoState], orders: Orders) -> Callable[[Request], Any]:
    """Return what takes a viewer's orders."""

    async def order(request: Request) -> Response:
        name, verb = request.path_params["name"], request.path_params["verb"]
        known = {each.name: each for each in state().processes}
        if name not in known:
            return as_json({"error": f"the demo has no process {name}"}, 404)
        process = known[name]
        if verb not in process.verbs:
            can = " or ".join(process.verbs) or "nothing"
            why = f"{name} is {process.state}: expected {can}, got {verb}"
            return as_json({"error": why}, 409)
        orders.put((verb, name))
        return as_json({})

    return order
