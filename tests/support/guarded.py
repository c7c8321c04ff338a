"""Guarded: a browser's pages that are watched: what goes wrong in them fails the test.

    with Guarded(chromium, viewport=PHONE) as guarded:
        page = guarded.page()
        page.goto(...)

What counts as wrong: an error on the console (a breach of the Content-Security-Policy is one), an
exception that no script has caught, an answer of status 400 or more, a request to any other host,
and a dialog of `alert`. A test that is about one of them names it: `guarded.expects("401")`.
"""

from __future__ import annotations

from datetime import UTC, datetime
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from submerge_aggregator.operators.scopes import Scope
from support.paged import Paged

OWN = ("127.0.0.1", "localhost")
"""Hosts that may be asked: this machine."""

FAILED = "Failed to load resource"
"""What the console says of an answer that is none; the answer itself says more."""

PLACE = {"timezone_id": "UTC", "locale": "en-GB"}
"""Where a browser is, as far as what it draws depends on that."""

WATCH = """
window.addEventListener("securitypolicyviolation", (event) => {
  console.error(`policy: ${event.violatedDirective} ${event.blockedURI} ${event.sourceFile}`);
});
"""


class Guarded:
    """One context of a browser.

    Parameters
    ----------
    chromium : Browser
    at : float, optional
        What time it is there, Unix seconds; by default, as it is.
    **how
        As `Browser.new_context`.

    Attributes
    ----------
    context : BrowserContext
    wrong : list of str
        What has gone wrong so far.
    asked : list of str
        "METHOD path" of each request so far.
    """

    def __init__(self, chromium: Any, *, at: float | None = None, **how: Any) -> None:
        self.wrong: list[str] = []
        self.asked: list[str] = []
        self._expected: list[str] = []
        self.context = chromium.new_context(**PLACE | how)
        if at is not None:
            self.context.clock.set_fixed_time(datetime.fromtimestamp(at, UTC))
        self.context.add_init_script(WATCH)
        self.context.on("request", self._request)
        self.context.on("response", self._response)
        self.context.on("console", self._console)
        self.context.on("weberror", lambda error: self.wrong.append(f"exception: {error.error}"))
        self.context.on("dialog", self._dialog)

    def __enter__(self) -> Guarded:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.context.close()
        if kind is None and self.unexpected:
            raise AssertionError("in the browser: " + "; ".join(self.unexpected))

    def page(self) -> Any:
        """Return a new page."""
        return self.context.new_page()

    def has_session(self, paged: Paged, scope: Scope, name: str = "night") -> None:
        """Have a session of a new token, as if somebody had logged in."""
        before = paged.cookie, paged.proof
        paged.logs_in(scope, name)
        self.context.add_cookies([paged.browsers_cookie])
        paged.cookie, paged.proof = before

    def expects(self, *parts: str) -> None:
        """Let what goes wrong contain one of these."""
        self._expected += parts

    @property
    def unexpected(self) -> list[str]:
        """What has gone wrong, and was not expected."""
        return [each for each in self.wrong if not any(part in each for part in self._expected)]

    def _request(self, request: Any) -> None:
        url = urlsplit(request.url)
        self.asked.append(f"{request.method} {url.path}")
        if url.scheme not in ("data", "blob") and url.hostname not in OWN:
            self.wrong.append(f"asks another host: {request.url}")

    def _response(self, response: Any) -> None:
        if response.status >= 400:
            path = urlsplit(response.url).path
            self.wrong.append(f"{response.status} {response.request.method} {path}")

    def _console(self, message: Any) -> None:
        if message.type == "error" and not message.text.startswith(FAILED):
            self.wrong.append(f"console: {message.text}")

    def _dialog(self, dialog: Any) -> None:
        self.wrong.append(f"dialog: {dialog.message}")
        dialog.dismiss()
