"""A site of somebody else, whose page tries what it can against ours in a visitor's browser.

with Stranger("stranger.example", victim="http://127.0.0.1:8473") as stranger:
    page.goto(stranger.url)
    page.evaluate("tries.fetched()")
"""

from __future__ import annotations

import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

PAGE = """<!doctype html><meta charset="utf-8"><title>a prize</title><h1>You have won</h1>
<script>
const victim = "VICTIM", order = victim + "/api/nodes/room/pump-1/quarantine";
const told = (said) => said.then((answer) => answer.text()).then((text) => text, () => "nothing");
window.tries = {
  read: () => told(fetch(victim + "/data/fleet/room", { credentials: "include" })),
  blind: () => told(fetch(order, { method: "POST", mode: "no-cors", credentials: "include" })),
  asked: () => told(fetch(order, {
    method: "POST", credentials: "include", headers: { "x-submerge-proof": "0".repeat(64) },
  })),
  marks: () => told(fetch(victim + "/data/marks", { credentials: "include" })),
  script: () => new Promise((done) => {
    const script = document.createElement("script");
    script.addEventListener("load", () => done("loaded"));
    script.addEventListener("error", () => done("nothing"));
    script.src = victim + "/static/shared/words.js";
    document.head.append(script);
  }),
  frame: () => new Promise((done) => {
    const frame = document.createElement("iframe");
    frame.addEventListener("load", () => {
      try {
        done(frame.contentDocument === null ? "closed" : frame.contentDocument.body.textContent);
      } catch {
        done("closed");
      }
    });
    frame.src = victim + "/";
    document.body.append(frame);
  }),
  form: () => {
    const form = document.createElement("form");
    Object.assign(form, { method: "post", action: order });
    document.body.append(form);
    form.submit();
  },
};
</script>
"""


class Stranger:
    """A small server of one page.

    name : the host under which a browser comes
    victim : the origin that it is about
    """

    def __init__(self, name: str, victim: str) -> None:
        body = PAGE.replace("VICTIM", victim).encode()

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                self.send_response(200 if self.path == "/" else 204)
                self.send_header("content-type", "text/html")
                self.end_headers()
                self.wfile.write(body if self.path == "/" else b"")

            def log_message(self, *_: object) -> None:
                """Say nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)
        self.url = f"http://{name}:{self._server.server_port}/"

    def __enter__(self) -> Stranger:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._thread.join()
        self._server.server_close()
