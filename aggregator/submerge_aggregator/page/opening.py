"""page_serving(): the page of an aggregator, inside its process or beside it."""

from __future__ import annotations

import gzip
import hashlib
import ipaddress
import os
import socket
from contextlib import suppress
from functools import cached_property
from html import escape
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qs

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from submerge import PeerError, SubmergeError, UsageError
from submerge_aggregator.audit import Record
from submerge_aggregator.config import AggregatorConfig
from submerge_aggregator.http.serving import Serving, as_json, protocol_of
from submerge_aggregator.listening import listen
from submerge_aggregator.operators.access import OperatorAccess, OrderLog
from submerge_aggregator.operators.config import OperatorsConfig, tokens_path
from submerge_aggregator.operators.tls_files import operators_tls
from submerge_aggregator.operators.tokens import KnownTokens
from submerge_aggregator.page import data
from submerge_aggregator.page.calls import InsideCalls
from submerge_aggregator.page.config import PORTS, PageConfig
from submerge_aggregator.page.gate import Hosts, PageGate, PageIdentities
from submerge_aggregator.page.sessions import Entering, Sessions, key_path, read_key
from submerge_aggregator.page.watched import Watched
from submerge_client import clock
from submerge_client.logs import say
from submerge_client.uplink.tls import Tls

if TYPE_CHECKING:
    import jinja2

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
    watched: Watched, entering: Entering, files: StaticFiles, drawing: Drawing
) -> Starlette:
    """Return the page: `PageGate` stands before it."""

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
            Route("/static/{path:path}", files.answer),
        ],
        exception_handlers={HTTPException: unknown, SubmergeError: _refused},
    )


def _sessions(drawing: Drawing, entering: Entering) -> list[Route]:
    async def login(request: Request) -> Response:
        back = _inside(request.query_params.get("back", "/"))
        if request.method == "POST":
            fields = parse_qs((await entering.body(request)).decode("utf-8", "replace"))
            back = _inside(fields.get("back", ["/"])[0])
            cookie, why = entering.enter(request, fields.get("token", [""])[0].strip())
        else:
            link = request.query_params.get("once", "") if request.method == "GET" else ""
            if not link:
                return drawing.draw(request, "login", back=back, why="")
            cookie, why = entering.follow(request, link)
        if why:
            return drawing.draw(request, "login", 401, back=back, why=why)
        answer: Response = RedirectResponse(back, 303)
        if request.method == "GET":
            # A link may be followed on another site, which a redirect would go on from.
            page = f'<meta http-equiv="refresh" content="0;url={escape(back)}">'
            answer = Response(page, media_type="text/html")
        if cookie is not None:
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


def page_serving(
    api: Starlette, log: OrderLog, config: AggregatorConfig, page: PageConfig, *, record: Record
) -> tuple[Serving, str]:
    """Return what serves the page, which listens already, and a link to it that is good once."""
    if find_spec("jinja2") is None:  # it is loaded when the first view is drawn
        raise UsageError(
            "[page] needs jinja2, which is not installed: pip install 'submerge[page]'"
        )
    tls = page_tls(config, page)

    def wall() -> float:
        return clock.now().wall

    tokens = KnownTokens(tokens_path(config.operators, config.store), record)
    sessions = Sessions(read_key(key_path(config.store)), tokens, wall)
    listener = listening(page)
    cookie = f"submerge-{listener.getsockname()[1]}"  # all ports of a host share their cookies
    hosts = Hosts.of({socket.gethostname(), page.endpoint.host}, page.names)
    identify = PageIdentities(sessions, hosts, cookie)
    # A command that can be copied; other machines are not shown where the store is, nor does a log
    # that they may read say how to get in.
    local = page.is_local and not page.names
    entering = Entering(sessions, cookie, log, here=local)
    store = os.path.realpath(config.store) if local else ""
    watched = Watched(InsideCalls(api), wall)
    app = page_app(watched, entering, StaticFiles(), Drawing(store))
    gate = PageGate(app, OperatorAccess(api, identify, log), identify, log, tls is not None)
    url = url_of(listener, secure=tls is not None)
    link = f"{url}login?once={sessions.link}"
    say("page", url=link if local else url)
    return Serving(gate, listener, protocol_of(tls, log)), link


def listening(page: PageConfig) -> socket.socket:
    endpoint = page.endpoint
    for port in PORTS[:-1] if page.address is None else ():
        with suppress(UsageError):
            return listen(endpoint._replace(port=port), setting="page.address")
    if page.address is None:
        endpoint = endpoint._replace(port=PORTS[-1])
    return listen(endpoint, setting="page.address")


def url_of(listener: socket.socket, *, secure: bool) -> str:
    """Return what a person types to see the page of a listening socket."""
    host, port, *_ = listener.getsockname()
    if ipaddress.ip_address(host).is_unspecified:
        host = socket.gethostname()
    return f"http{'s' if secure else ''}://{f'[{host}]' if ':' in host else host}:{port}/"


def page_tls(config: AggregatorConfig, page: PageConfig) -> Tls | None:
    """Return the page's certificate, its own or another of the aggregator; None without TLS."""
    # Browsers show tokens, and no certificates: no authority is asked for.
    if page.cert is not None:
        return Tls(None, page.cert, page.key)
    if page.is_local:
        return None
    operators = config.operators
    if operators is not None and operators.cert is not None:
        return Tls(None, operators.cert, operators.key)
    found = operators_tls(OperatorsConfig(), config.listen.grpc, config.kit)
    return None if found is None else found if found.kit else Tls(None, found.cert, found.key)


FOLDER = Path(__file__).with_name("static")

TYPES = {
    ".js": "text/javascript; charset=utf-8",
    ".css": "text/css; charset=utf-8",
    ".svg": "image/svg+xml",
}
"""Media types by a file's ending; other files are not sent."""


class StaticFile(NamedTuple):
    """A file, compressed."""

    body: bytes
    etag: str
    media_type: str


class StaticFiles:
    """All files of a folder, by path: requests are looked up among these, and open no file."""

    def __init__(self) -> None:
        self._files: dict[str, StaticFile] = {}
        for path in sorted(FOLDER.rglob("*")):
            media_type = TYPES.get(path.suffix)
            if media_type is not None and path.is_file():
                data = path.read_bytes()
                etag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
                body = gzip.compress(data, 9, mtime=0)
                name = path.relative_to(FOLDER).as_posix()
                self._files[name] = StaticFile(body, etag, media_type)

    async def answer(self, request: Request) -> Response:
        found = self._files.get(request.path_params["path"])
        if found is None:
            return Response("no such file", 404, media_type="text/plain")
        # Asked for again each time, and sent again only if it has changed.
        headers = {"etag": found.etag, "cache-control": "no-cache", "vary": "accept-encoding"}
        if request.headers.get("if-none-match") == found.etag:
            return Response(b"", 304, headers)
        if "gzip" not in request.headers.get("accept-encoding", ""):
            return Response(gzip.decompress(found.body), 200, headers, found.media_type)
        headers["content-encoding"] = "gzip"
        return Response(found.body, 200, headers, found.media_type)


TEMPLATES = Path(__file__).with_name("templates")


class Drawing:
    """Draws frames of views; what is put into them is escaped.

    store : For a command that makes a token; empty where strangers would read it.
    """

    def __init__(self, store: str) -> None:
        self._store = store

    @cached_property
    def _templates(self) -> jinja2.Environment:
        """The templates: an aggregator at whose page people do not look does not load them."""
        import jinja2

        return jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            autoescape=True,
            trim_blocks=True,
            undefined=jinja2.StrictUndefined,
        )

    def draw(self, request: Request, name: str, status: int = 200, **more: Any) -> Response:
        operator, session = request.scope.get("operator"), request.scope.get("session")
        known = {
            "store": self._store,
            "here": request.scope["path"],
            "scope": "" if operator is None else operator.scope,
            "who": "" if session is None else session.name,
            "proof": request.scope.get("proof", ""),
        }
        text = self._templates.get_template(f"{name}.html").render(known | more)
        return Response(text, status, media_type="text/html")
