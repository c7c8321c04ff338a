"""Drawing: the templates of the page, and its files."""

from __future__ import annotations

import gzip
import hashlib
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from starlette.requests import Request
from starlette.responses import Response

if TYPE_CHECKING:
    import jinja2

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
    """All files of a folder, by their path below it.

    What a request names is looked up among these, and opens no file.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self._files: dict[str, StaticFile] = {}
        for path in sorted(folder.rglob("*")):
            media_type = TYPES.get(path.suffix)
            if media_type is not None and path.is_file():
                data = path.read_bytes()
                etag = f'"{hashlib.sha256(data).hexdigest()[:16]}"'
                body = gzip.compress(data, 9, mtime=0)
                name = path.relative_to(folder).as_posix()
                self._files[name] = StaticFile(body, etag, media_type)

    @property
    def compressed_bytes(self) -> int:
        """Bytes of all files as they are sent."""
        return sum(len(each.body) for each in self._files.values())

    async def answer(self, request: Request) -> Response:
        """Answer a request for one of them."""
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

    store : The aggregator's, for a command that makes a token; empty where strangers would read it.
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
        """Return a template as an answer."""
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
