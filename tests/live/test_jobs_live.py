"""Jobs over real processes: a root, two aggregators, eight clients; gRPC and MQTT."""

from __future__ import annotations

import json
import signal
from collections.abc import Iterator

import pytest

pytest.importorskip("grpc")

from support.job_programs import ROOT, ROWS, SITES, TREE, JobPrograms, answer_here
from support.kills.configs import OverGrpc, OverMqtt, Way
from support.patience import until
from support.programs import Program, Programs, free_port

pytestmark = pytest.mark.slow

SETTINGS = {"clusters": 3, "seed": 5}


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


def test_one_client_is_killed_and_one_aggregator_restarts(way, programs):
    """The client is named; the others stay; the answer is theirs, and the aggregator loses nothing.

    Each row is counted once, as without a job; so are those that come while the job runs.
    """
    fleet = JobPrograms(way, programs)
    fleet.has_all()
    fleet.running["h"].signal(signal.SIGSTOP)  # the job stays open until it answers
    fleet.order(id="job-1", kind="kmeans", settings=SETTINGS, open_s=200, round_s=200)
    fleet.event("progressed", job="job-1", phase="open")
    fleet.running["a"].until("job begins")
    fleet.running["yard"].kill()
    fleet.start("yard")
    fleet.feed("b", "c")
    fleet.counts((8 + 2) * ROWS)
    fleet.running["a"].kill()  # by now it takes part
    fleet.running["h"].signal(signal.SIGCONT)
    fleet.event("progressed", job="job-1", round=1, attempt=1)
    fleet.start("a")  # another process, which has no part
    outcome = fleet.event("ended", job="job-1")

    assert "" == outcome["failure"]
    assert {"a": "restarted"} == outcome["left"]
    assert list("abcdefgh") == outcome["opened"]
    assert {"hall": set("bcd"), "yard": set("efgh")} == {
        site: set(below) for site, below in outcome["stayed"].items()
    }
    assert 2 == outcome["attempts"]
    assert answer_here("kmeans", SETTINGS, outcome["stayed"]) == outcome["answer"]
    # Eight clients, two that have read on, and one that began again.
    fleet.counts((8 + 2 + 1) * ROWS)


@pytest.mark.parametrize(
    ("kind", "more"), [("cluster", {}), ("kpca", {"components": 2, "points": 12})]
)
def test_clients_say_to_which_cluster_a_row_belongs(programs, kind, more):
    """A kept answer is in the lines of the rows that come after it, and outlives the process."""
    ports = {node: free_port() for node in (ROOT, *SITES)}
    shared = dict.fromkeys("abcdefgh", "share_points = 64\n")
    fleet = JobPrograms(OverGrpc(ports), programs, scoring="a", **shared)
    fleet.has_all()
    settings = {"clusters": 3, "seed": 5, "keep": True} | more
    fleet.order(id="job-1", kind=kind, settings=settings)
    fleet.event("ended", job="job-1")
    fleet.running["a"].until("clusters kept")
    fleet.feed("a")
    _says_clusters(fleet.running["a"])
    fleet.running["a"].kill()
    fleet.start("a").until("clusters kept")
    fleet.feed("a")
    _says_clusters(fleet.running["a"])


def _says_clusters(client: Program) -> None:
    until(
        lambda: {1, 2, 3} <= {json.loads(line).get("cluster") for line in list(client.out)},
        lambda: f"rows of three clusters among {list(client.out)[-2:]}",
    )
