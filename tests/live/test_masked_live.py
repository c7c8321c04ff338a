"""A masked job over real processes, with kits: two aggregators, eight clients."""

from __future__ import annotations

import pytest

pytest.importorskip("grpc")
pytest.importorskip("cryptography")

from submerge.protocol.permission import Permission
from support.certified import LOOPBACK, Certified
from support.job_programs import ROOT, SITES, TREE, JobPrograms, answer_here
from support.kills.configs import GROUP, OverGrpc
from support.programs import Programs, free_port

pytestmark = pytest.mark.slow


class OverTls(OverGrpc):
    """The same with TLS, by the nodes' kits."""

    def up(self, parent: str) -> str:
        return f'url = "grpcs://127.0.0.1:{self.ports[parent]}"\n'

    def listens(self, node: str) -> str:
        return f'[listen.grpc]\naddress = "127.0.0.1:{self.ports[node]}"\n'


SETTINGS = {"clusters": 3, "masked": True}


def test_a_masked_job_has_the_answer_of_one_process(tmp_path):
    """Its rows are in no other job; one that is masked alone says so."""
    certified, above = Certified(tmp_path), (ROOT, *SITES)
    kits = {}
    for node in TREE:
        allowed = Permission("aggregator") if node in above else Permission("client", (GROUP,))
        hosts = [LOOPBACK] if node in above else []
        kits[node] = f'kit = "{certified.kit(node, *hosts, permission=allowed)}"\n'
    kits["a"] += "privacy = { masked = true }\n"
    with Programs() as programs:
        way = OverTls({node: free_port() for node in above})
        fleet = JobPrograms(way, programs, **kits)
        fleet.has_all()
        fleet.order(id="job-1", kind="kmeans", settings=SETTINGS)
        outcome = fleet.event("ended", job="job-1")
        fleet.order(id="job-2", kind="moments", settings={})
        next_one = fleet.event("ended", job="job-2")

    assert ("", {}) == (outcome["failure"], outcome["left"])
    assert sorted(set(TREE) - {*above}) == outcome["opened"]
    assert answer_here("kmeans", SETTINGS, outcome["stayed"]) == outcome["answer"]
    declined = next_one["declined"]
    assert "it takes part in masked jobs alone: [privacy] masked = true" == declined.pop("a")
    assert {"its rows had 400 attempts of jobs: it waits for as many new rows"} == {
        *declined.values()
    }
