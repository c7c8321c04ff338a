"""Jobs over real processes: a root, two aggregators, eight clients; gRPC and MQTT."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

pytest.importorskip("grpc")

from support.job_programs import ROOT, SITES, TREE, JobPrograms, answer_here
from support.kills.configs import OverGrpc, OverMqtt, Way
from support.programs import Programs, free_port

pytestmark = pytest.mark.slow

SETTINGS = {"clusters": 3, "seed": 5, "held_out": 0.2}


@pytest.fixture(params=["grpc", "mqtt"])
def way(request: pytest.FixtureRequest) -> Way:
    """How children reach their parents."""
    if request.param == "grpc":
        return OverGrpc({node: free_port() for node in (ROOT, *SITES)})
    return OverMqtt(request.getfixturevalue("mosquitto").port)


@pytest.fixture
def programs() -> Iterator[Programs]:
    with Programs() as programs:
        yield programs


def test_a_job_over_all_has_the_answer_of_one_process(way, programs):
    """Every client stays; the answer has the bytes of the same job over the same rows."""
    fleet = JobPrograms(way, programs)
    fleet.has_all()
    fleet.order(id="job-1", kind="kmeans", settings=SETTINGS)
    outcome = fleet.event("ended", job="job-1")

    assert "" == outcome["failure"]
    assert {"hall", "yard"} == set(outcome["stayed"])
    assert sorted(set(TREE) - {ROOT, *SITES}) == outcome["opened"]
    assert answer_here("kmeans", SETTINGS, outcome["stayed"]) == outcome["answer"]
