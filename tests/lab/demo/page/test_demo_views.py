"""The demo's view: who may give its orders; and that the product has nothing of it."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import get_args

import pytest

pytest.importorskip("jinja2")

from submerge_lab.demo.page.fleet import Verb
from submerge_lab.demo.page.serving import PageThread, make_token
from submerge_lab.demo.page.state import DemoState, ShownProcess
from submerge_lab.demo.page.views import Orders, demo_views
from support.page_client import PageClient
from support.paged import Paged

PACKAGES = ("aggregator/submerge_aggregator", "operate/submerge_operate", "lab/submerge_lab")
ROOT = Path(__file__).parents[4]

CONFIG = """
node = "root"
store = "{folder}/root.db"
listen.grpc.address = "127.0.0.1:0"
listen.grpc.insecure = true
status.address = ""
page.address = "0.0.0.0:1"
page.cert = "none.pem"
page.key = "none.pem"
groups.room.summary.rank = 1
groups.room.schema.channels = ["a", "b"]
"""


class Viewer(PageClient):
    """A browser at the demo's page; `orders` is what the demo was asked to do."""

    def __init__(self, port: int, orders: Orders) -> None:
        self.port, self.orders = port, orders

    def opens(self) -> None:
        """Open the view, as a browser that keeps cookies."""
        first = self.get("/demo")
        assert 303 == first.status
        self.cookie = first.headers["set-cookie"].partition(";")[0]
        page = self.get(first.headers["location"]).body.decode()
        self.proof = page.split('submerge-proof" content="')[1][:64]


@pytest.fixture
def viewer(tmp_path):
    """No process runs: the root is said to, and one that has ended."""
    processes = (
        ShownProcess("root", "root", "", "running", 1, 0.0, ("kill", "stop")),
        ShownProcess("client-1", "client", "root", "stopped", None, 0.0, ("start",)),
    )
    orders = Orders()
    config = tmp_path / "root.toml"
    config.write_text(CONFIG.format(folder=tmp_path))
    secret = make_token(tmp_path / "root.db")
    views = demo_views(lambda: DemoState(0.0, 1.0, processes, None), orders, secret)
    with PageThread(config, views) as page:
        yield Viewer(int(page.url.rsplit(":", 1)[1].strip("/")), orders)


def test_a_viewer_gives_orders_without_a_token(viewer):
    """The view begins a session by itself."""
    viewer.opens()

    assert 200 == viewer.post("/demo/root/kill").status
    assert 200 == viewer.post("/demo/client-1/start").status
    assert [("kill", "root"), ("start", "client-1")] == [viewer.orders.get() for _ in range(2)]


def test_it_listens_on_this_machine_alone(viewer):
    """Whatever the root's own configuration says of a page."""
    viewer.opens()
    (ports,) = {
        line.split()[1]
        for line in Path("/proc/net/tcp").read_text().splitlines()[1:]
        if line.split()[1].endswith(f":{viewer.port:04X}") and line.split()[3] == "0A"
    }

    assert f"0100007F:{viewer.port:04X}" == ports


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"x_submerge_proof": ""}, 403, id="without the proof"),
        pytest.param({"x_submerge_proof": "0" * 64}, 403, id="with another proof"),
        pytest.param({"origin": ""}, 403, id="without an origin"),
        pytest.param({"origin": "http://elsewhere.example"}, 403, id="from another site"),
        pytest.param({"origin": "null"}, 403, id="from a frame in a box"),
        pytest.param({"host": "elsewhere.example"}, 403, id="under a stranger's name"),
        pytest.param({"cookie": ""}, 401, id="without the session"),
    ],
)
def test_another_site_cannot_kill(viewer, headers, status):
    """A browser that has the session sends what another site asks of it; that is not enough."""
    viewer.opens()
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if "cookie" in named:
        viewer.cookie = named.pop("cookie")

    assert status == viewer.post("/demo/root/kill", **named).status
    assert viewer.orders.empty()


def test_no_one_kills_by_a_link(viewer):
    viewer.opens()

    assert 405 == viewer.get("/demo/root/kill").status
    assert viewer.orders.empty()


@pytest.mark.parametrize(
    ("path", "status", "why"),
    [
        ("/demo/root/start", 409, "root is running: expected kill or stop, got start"),
        ("/demo/root/maim", 409, "root is running: expected kill or stop, got maim"),
        ("/demo/client-9/kill", 404, "the demo has no process client-9"),
    ],
)
def test_an_order_that_means_nothing_says_why(viewer, path, status, why):
    viewer.opens()
    answer = viewer.post(path)

    assert (status, why) == (answer.status, answer.json["error"])
    assert viewer.orders.empty()


def test_a_browser_without_cookies_sees_it_and_is_not_led_in_rings(viewer):
    first = viewer.get("/demo")
    second = viewer.get(first.headers["location"])

    assert (303, 200) == (first.status, second.status)
    assert 401 == viewer.post("/demo/root/kill").status


def test_its_script_is_sent_as_the_others(viewer):
    assert 200 == viewer.get("/static/demo/demo.js").status
    assert 200 == viewer.get("/static/shared/ask.js").status
    assert 404 == viewer.get("/static/demo/../views.py").status


def test_a_page_of_an_aggregator_has_none_of_it(tmp_path):
    """Not for a person with all scopes either: no view, no data, no order, no script."""
    with Paged(tmp_path) as paged:
        paged.logs_in("operate")

        for path in ("/demo", "/data/demo", "/static/demo/demo.js"):
            assert 404 == paged.get(path).status
        for verb in get_args(Verb):
            assert 404 == paged.post(f"/demo/root/{verb}").status
            assert 404 == paged.post(f"/api/demo/root/{verb}").status
        assert "/demo" not in paged.get("/").body.decode()


def givers_of_more_views() -> list[str]:
    """Modules of the product that hand further views to a page, from outside of it."""
    found = []
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            calls = [n for n in ast.walk(ast.parse(path.read_text())) if isinstance(n, ast.Call)]
            for call in calls:
                name = getattr(call.func, "id", getattr(call.func, "attr", ""))
                if name in ("page_serving", "page_app") and (
                    len(call.args) > 4 or any(each.arg in ("more", None) for each in call.keywords)
                ):
                    found.append(f"{path.relative_to(ROOT)}: {name}")
    return found


def test_only_the_demo_adds_views_to_a_page():
    """`submerge aggregator`, `submerge aggregator page` and `submerge up` give none."""
    assert [
        "aggregator/submerge_aggregator/page/opening.py: page_app",
        "lab/submerge_lab/demo/page/serving.py: page_serving",
    ] == sorted(givers_of_more_views())
