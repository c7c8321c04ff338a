"""What stands before the admin API: who may is settled before anything else is looked at."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from submerge_aggregator.operators.access import (
    BURST,
    FAILED_BURST,
    FAILED_PER_S,
    OperatorAccess,
    OrderLog,
)
from submerge_aggregator.operators.identify import Denial, Operator, Peer

NETWORK = Peer(address="10.0.0.7")
DENIED = Denial(401, "wrong_token", "no")


class Gate:
    """An API of two routes, and those who ask it."""

    def __init__(self) -> None:
        self.entries: list[dict[str, Any]] = []
        self.now, self.reached, self.identified = 100.0, 0, 0
        self.found: Operator | Denial = Operator("token t", "10.0.0.7", "operate")

        async def answer(request: Request) -> Response:
            self.reached += 1
            status = 404 if request.path_params.get("node") == "none" else 200
            return Response(b'{"error": "no node none here"}', status)

        api = Starlette(
            routes=[
                Route("/nodes", answer),
                Route("/nodes/{group}/{node}/{verb}", answer, methods=["POST"]),
            ]
        )
        self.log = OrderLog(self._record, lambda: self.now)
        self.app = OperatorAccess(api, self._identify, self.log, steady=lambda: self.now)

    def _record(self, event: str, /, **facts: object) -> None:
        self.entries.append({"event": event, **facts})

    def _identify(self, *_: object) -> Operator | Denial:
        self.identified += 1
        return self.found

    def asks(
        self,
        method: str = "GET",
        path: str = "/nodes",
        *,
        peer: Peer = NETWORK,
        query: bytes = b"",
        headers: tuple[tuple[bytes, bytes], ...] = (),
    ) -> tuple[int, str]:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "method": method,
            "path": path,
            "query_string": query,
            "headers": headers,
            "state": {"peer": peer},
        }
        asyncio.run(self.app(scope, receive, send))
        self.headers = dict(sent[0]["headers"])
        return sent[0]["status"], json.loads(sent[1]["body"] or b"{}").get("error", "")


@pytest.fixture
def gate() -> Gate:
    return Gate()


def test_who_is_refused_reaches_nothing(gate):
    """Whether there is such a node or not, and whatever the path: the same answer."""
    gate.found = DENIED
    paths = ("/nodes", "/nodes/room/none/forget", "/nodes/room/c/forget", "/secret")
    answers = {gate.asks("POST", path) for path in paths}

    assert {(401, "no")} == answers
    assert 0 == gate.reached
    assert (b"Bearer", b"close") == (gate.headers[b"www-authenticate"], gate.headers[b"connection"])


def test_a_scope_too_small_reaches_nothing_and_is_recorded(gate):
    """By name; the query is not recorded: a person may have put a token there."""
    gate.found = Operator("token t", "10.0.0.7", "read")
    said = gate.asks("POST", "/nodes/room/c/forget", query=b"token=secret")

    assert (403, "this needs scope operate, yours is read") == said
    assert (0, 1) == (gate.reached, gate.log.denials.counts["scope"])
    (entry,) = gate.entries
    assert ("denied", "token t", "10.0.0.7") == (entry["event"], entry["by"], entry["address"])
    assert "POST /nodes/room/c/forget" == entry["what"]
    assert "secret" not in str(gate.entries)


@pytest.mark.parametrize(
    ("method", "path"), [("GET", "/other"), ("DELETE", "/nodes"), ("GET", "/nodes/"), ("PUT", "/")]
)
def test_what_no_route_takes_needs_operate(gate, method, path):
    """Who may less learns not even that it is not there."""
    gate.found = Operator("token t", "10.0.0.7", "judge")
    assert (403, "this needs scope operate, yours is judge") == gate.asks(method, path)


def test_an_order_that_the_aggregator_refuses_is_recorded_with_the_reason(gate):
    assert 404 == gate.asks("POST", "/nodes/room/none/forget")[0]
    assert 200 == gate.asks("POST", "/nodes/room/c/forget")[0]
    assert [("denied", "token t", "no node none here")] == [
        (each["event"], each["by"], each["why"]) for each in gate.entries
    ]


def test_failed_attempts_of_an_address_are_bounded(gate):
    """What is right is let in meanwhile: who fails may be anybody behind the same proxy."""
    right = Operator("token t", "10.0.0.7", "operate")
    gate.found = DENIED
    for _ in range(FAILED_BURST):
        assert 401 == gate.asks()[0]
    for _ in range(2 * FAILED_BURST):
        gate.found = DENIED
        assert 429 == gate.asks()[0]
        gate.found = right
        assert 200 == gate.asks()[0]

    gate.found = DENIED
    assert 401 == gate.asks(peer=Peer(address="10.0.0.8"))[0]
    gate.now += 1 / FAILED_PER_S
    assert 401 == gate.asks()[0]


def test_attempts_of_one_machine_count_together_whatever_address_it_takes(gate):
    """IPv6 gives it 2^64 of them."""
    gate.found = DENIED
    for i in range(FAILED_BURST):
        assert 401 == gate.asks(peer=Peer(address=f"2001:db8::{i:x}"))[0]

    assert 429 == gate.asks(peer=Peer(address="2001:db8::ffff"))[0]
    assert 401 == gate.asks(peer=Peer(address="2001:db8:0:1::1"))[0]


def test_what_is_right_costs_no_attempt(gate):
    for _ in range(2 * FAILED_BURST):
        assert 200 == gate.asks()[0]


def test_a_certificate_is_not_held_up_by_guesses_at_its_address(gate):
    """TLS has checked it; a wrong token beside it is one more guess."""
    gate.found = DENIED
    for _ in range(FAILED_BURST + 1):
        gate.asks()
    gate.found = Operator("operator anna", "10.0.0.7", "operate")
    shown = NETWORK._replace(certificate={"subject": ()})

    assert 200 == gate.asks(peer=shown)[0]
    gate.found = DENIED
    assert 429 == gate.asks(peer=shown, headers=((b"authorization", b"Bearer x"),))[0]


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        (((b"origin", b"https://evil.example"),), 403),
        (((b"content-length", b"3"), (b"transfer-encoding", b"chunked")), 400),
    ],
    ids=["a page's", "two lengths"],
)
def test_a_request_in_a_shape_of_no_client_of_ours_is_refused(gate, headers, status):
    assert status == gate.asks("POST", "/nodes/room/c/forget", headers=headers)[0]
    assert (0, 1) == (gate.reached, gate.log.denials.counts["shape"])


def test_a_flood_of_refusals_leaves_room_in_the_audit_log(gate):
    """What is left out is counted in the next entry; those of an operator stand apart."""
    gate.found = DENIED
    for i in range(2 * BURST):
        gate.asks(peer=Peer(address=f"10.0.1.{i}"))
    assert BURST == len(gate.entries)
    gate.found = Operator("token t", "10.0.0.7", "read")
    gate.asks("POST", "/nodes/room/c/forget")

    assert (BURST + 1, BURST) == (len(gate.entries), gate.entries[-1]["unrecorded"])
    assert 2 * BURST == gate.log.denials.counts["wrong_token"]
