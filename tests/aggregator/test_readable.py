"""A model that children could not read is not sent; a log line and a metric name its cause."""

from __future__ import annotations

import logging
from dataclasses import replace

import numpy as np
import pytest

from submerge import Schema
from submerge.aggregator.group import GroupPlan
from submerge.aggregator.node import AggregatorNode
from submerge.protocol.machine import Now
from submerge.protocol.messages import Counts, Incarnation, Report, Stamp
from submerge.protocol.settings import AggregatorSettings
from submerge.protocol.summaries import Subspaces
from submerge_aggregator.batch import All, checked, objection
from submerge_aggregator.downlink import Inbound
from submerge_aggregator.http.metrics import of_server
from submerge_aggregator.server import Server
from submerge_aggregator.store import Store
from submerge_aggregator.worker import CommitWorker
from submerge_proto.wire import codec
from support.wire import a_model, a_report, subspace_of

SCHEMA, SUMMARIES = Schema.anonymous(4), Subspaces(2)


@pytest.mark.parametrize("make", [a_model, a_report])
@pytest.mark.parametrize("coarse", [False, True])
def test_what_can_be_read_meets_no_objection(make, coarse):
    """Models and reports as they are every day."""
    assert objection(make(), coarse=coarse) is None


@pytest.mark.parametrize(
    "message",
    [
        a_model(created=float("nan")),
        a_model(summary=replace(subspace_of(6, [3.0]), mean=np.full(6, np.nan))),
        a_model(version=2**64),
        a_model(nodes=-1),
        a_report(as_of=float("inf")),
        a_report(summary=replace(subspace_of(6, [3.0]), energy=float("inf"))),
    ],
)
def test_what_cannot_be_read_does(message):
    """Whether bytes can be made of it or not: it says why, and raises nothing."""
    assert objection(message, coarse=False)


class Clock:
    """Stands still until the test moves it."""

    steady = 100.0

    def __call__(self) -> Now:
        return Now(self.steady, 1.7e9 + self.steady)


def _heard(worker: CommitWorker, node: str, seq: int) -> Inbound:
    rows = np.random.default_rng(seq).standard_normal((10, 4))
    learner = SUMMARIES.learner(SCHEMA)
    learner.learn(rows, rows)
    message = Report(
        stamp=Stamp(node, "g", Incarnation(1_700_000_000_000, 7), seq),
        final=False,
        pinned=worker.node.incarnation,
        fence=b"",
        fingerprint=SCHEMA.fingerprint,
        summary=learner.summary(),
        moments=None,
        counts=Counts(10),
        as_of=1.7e9,
        synced=True,
        version=0,
        lifetime=10,
    )
    return Inbound("report", codec.encode(message), node, False, lambda *_: None, lambda *_: None)


def test_an_injected_fault_is_an_error_in_the_log_and_a_count(tmp_path, caplog):
    """The root goes on with a model of the others, and one line says whose rows left it."""
    clock = Clock()

    def fault(message):
        return "injected" if message.counts.learnt > 10 else objection(message, coarse=False)

    plans = {
        name: replace(plan, objection=fault)
        for name, plan in checked({"g": GroupPlan(SUMMARIES, SCHEMA)}, coarse=False).items()
    }
    settings, rng = AggregatorSettings("root", None), np.random.default_rng(0)
    worker = CommitWorker(
        lambda: AggregatorNode(settings, plans, rng), Store(tmp_path / "s.db"), clock
    )
    worker.start()
    worker.commit_batch([_heard(worker, "good", 1)])
    clock.steady += 100
    worker.commit_batch([])
    clock.steady += 100
    with caplog.at_level(logging.ERROR, logger="submerge"):
        outs = worker.commit_batch([_heard(worker, "bad", 1)])

    (line,) = [each for each in caplog.records if each.getMessage() == "model rejected"]
    assert logging.ERROR == line.levelno
    assert ("bad",) == line.facts["nodes"]
    assert "injected" in line.facts["why"]
    assert 1 == worker.tallies.model_rejected
    (model,) = [codec.decode("watch", out.data) for out in outs if isinstance(out, All)]
    assert 10 == model.counts.learnt
    assert "unreadable" == worker.node.excluded("g")[1]["bad"].cause
    server = Server(worker, downlinks=(), uplink=None, clock=clock)
    assert 1 == of_server(server)["model_rejected_total"]
    worker.close()
