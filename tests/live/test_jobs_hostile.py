"""A client's kit cannot open a job: what it sends is refused by type, counted, and changes nothing.

Over gRPC with mutual TLS, and over MQTT through Mosquitto with the settings that are shipped.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

pytest.importorskip("grpc")
pytest.importorskip("cryptography")

from submerge.jobs.envelopes import OPENING, JobAsk
from submerge.jobs.job import Job
from submerge.jobs.machine import JobPiece, JobPieceTaken
from submerge.jobs.parcels import Parcel
from submerge.protocol.messages import Incarnation, Stamp
from submerge_proto.wire import jobs, topics
from support.broker import PROGRAM, REQUIRED
from support.hostile import FLEET, GROUP, ROOT, OverGrpc, OverMqtt
from support.patience import until

pytestmark = pytest.mark.slow

JOB = Job("job-1", "moments", {}, GROUP, "0" * 64, 3)
STAMP = Stamp("mallory", GROUP, Incarnation(1, 2), 0)


@pytest.fixture(params=[OverGrpc, OverMqtt], ids=lambda way: way.name)
def way(request, tmp_path) -> Iterator[Any]:
    """A root, and the way to it."""
    if request.param is OverMqtt and PROGRAM is None and not REQUIRED:
        pytest.skip("mosquitto is not installed")
    with ExitStack() as stack:
        yield request.param(tmp_path, stack)


def ask(node: str = "mallory") -> bytes:
    """What a parent sends to open a job at a node."""
    parcel = Parcel.of(JOB, 0, JobAsk(JOB, 0, 60.0, None, OPENING, {}).pack())
    stamp = STAMP._replace(node=node)
    return jobs.encode(JobPiece(stamp, JOB.id, False, parcel.name, 0, 0, 1, parcel.pieces[0]))


def share(node: str = "mallory") -> bytes:
    """A contribution to a job that there is not."""
    stamp = STAMP._replace(node=node)
    return jobs.encode(JobPiece(stamp, JOB.id, True, bytes(16), 1, 0, 1, b"share"))


REFUSED = [
    ("denied", ask()),
    ("denied", jobs.encode(JobPieceTaken(STAMP, JOB.id, True, bytes(16), b"\1", True))),
    ("spoofed", ask("victim")),
    ("spoofed", share("victim")),
    ("malformed", b"\xff" * 40),
    ("name", share().replace(b"job-1", b"job/1")),
]


@pytest.mark.parametrize(("reason", "data"), REFUSED)
def test_what_a_client_may_not_send_is_counted_and_changes_nothing(way, reason, data):
    """An ask, an answer to a share, another's name, and bytes that are no message."""
    kit, before = way.fleet.kit("mallory"), way.root.held()
    way.message(kit, "job", data, silent=True)

    assert {reason: 1} == way.root.counts
    assert before == way.root.held()
    assert () == way.root._server.jobs.under_way


def test_a_client_does_not_reach_another_by_the_broker(tmp_path):
    """What it publishes on a parent's topic, or on another client's, arrives nowhere."""
    if PROGRAM is None and not REQUIRED:
        pytest.skip("mosquitto is not installed")
    with ExitStack() as stack:
        way = OverMqtt(tmp_path, stack)
        kit = way.fleet.kit("mallory")
        for topic in (
            topics.down(FLEET, ROOT, "victim", "job"),
            topics.down(FLEET, ROOT, "mallory", "job"),
            topics.up(FLEET, ROOT, "victim", "job", GROUP),
        ):
            with way.visitor(kit) as visitor:  # the broker hangs up after each
                visitor.say(topic, ask("victim"))
        with way.visitor(kit) as visitor:
            visitor.say(topics.up(FLEET, ROOT, "mallory", "job", GROUP), b"\xff")
            until(lambda: way.root.counts, lambda: "the last one")

        assert {"malformed": 1} == way.root.counts
