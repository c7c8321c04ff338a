"""StaticFiles: scripts, styles and pictures of the page, read once and sent compressed."""

from __future__ import annotations

import gzip
import hashlib
from pathlib import Path
from typing import NamedTuple

from starlette.requests import Request
from starlette.responses import Response

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
