"""A browser's requests without a browser: with cookie, origin and proof, as the page's scripts."""

from __future__ import annotations

import http.client
import json
import ssl
from typing import Any, NamedTuple
from urllib.parse import urlencode

from support.patience import PATIENCE_S


class PageAnswer(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class PageClient:
    """Somebody at a page on this machine.

    Attributes
    ----------
    port : int
    cookie, proof : str
        Of the session; empty without one.
    """

    port = 0
    cookie = proof = ""

    @property
    def origin(self) -> str:
        """The page's own."""
        return f"http://127.0.0.1:{self.port}"

    def begins(self, secret: str) -> PageAnswer:
        """Log in with a token, as the form does."""
        return self._begun(self.enters(secret))

    def follows(self, link: str) -> PageAnswer:
        """Log in by the link that is good once."""
        return self._begun(self.get("/" + link.split("/", 3)[3]))

    def _begun(self, answer: PageAnswer) -> PageAnswer:
        self.cookie = answer.headers["set-cookie"].partition(";")[0]
        self.proof = self.get("/").body.decode().split('submerge-proof" content="')[1][:64]
        return answer

    @property
    def browsers_cookie(self) -> dict[str, str]:
        """The session, for a browser."""
        name, _, value = self.cookie.partition("=")
        return {"name": name, "value": value, "url": self.origin, "sameSite": "Strict"}

    def leaves(self) -> None:
        """Forget the session."""
        self.cookie = self.proof = ""

    def enters(self, secret: str, **headers: str) -> PageAnswer:
        """Send the form of the login."""
        form = urlencode({"token": secret, "back": "/fleet"}).encode()
        return self.ask("POST", "/login", form, {"origin": self.origin} | headers)

    def get(self, path: str, **headers: str) -> PageAnswer:
        return self.ask("GET", path, b"", headers)

    def post(self, path: str, **headers: str) -> PageAnswer:
        """Give an order as the page's scripts do."""
        own = {"origin": self.origin, "x-submerge-proof": self.proof}
        return self.ask("POST", path, b"", own | headers)

    def ask(self, method: str, path: str, body: bytes, headers: dict[str, str]) -> PageAnswer:
        """Send a request; a header whose value is empty is left out."""
        mine = {"cookie": self.cookie} | {k.replace("_", "-"): v for k, v in headers.items()}
        connection = self._connection()
        try:
            connection.putrequest(method, path, skip_host="host" in mine)
            for name, value in mine.items():
                if value:
                    connection.putheader(name, value)
            connection.putheader("content-length", str(len(body)))
            connection.endheaders(body)
            answer = connection.getresponse()
            named = {name.lower(): value for name, value in answer.getheaders()}
            return PageAnswer(answer.status, named, answer.read())
        finally:
            connection.close()

    def _connection(self) -> http.client.HTTPConnection:
        if not self.origin.startswith("https:"):
            return http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_S)
        trusts_all = ssl.create_default_context()
        trusts_all.check_hostname, trusts_all.verify_mode = False, ssl.CERT_NONE
        return http.client.HTTPSConnection(
            "127.0.0.1", self.port, timeout=PATIENCE_S, context=trusts_all
        )
