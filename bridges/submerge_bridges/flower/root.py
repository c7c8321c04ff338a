"""FlowerRoot: the root of a group, driven by the rounds of a Flower server.

It is an aggregator's own `CommitWorker`: it commits what has come to its store before there is an
answer, counts what it refuses, and refuses a message that names another node than the one that
Flower says it is from. A round gives it all replies in one batch. Answers wait for the next
instruction to their node; if that is lost, the node reports again and is answered again.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from submerge import SubmergeError, UsageError
from submerge.aggregator.node import AggregatorNode
from submerge.history.knowledge import Learnt
from submerge.protocol.machine import Flush, Now
from submerge.protocol.messages import LATEST, Counts, Incarnation, Join, Stamp
from submerge_aggregator.admission.control import AdmissionControl
from submerge_aggregator.admission.decision import AdmissionRules
from submerge_aggregator.batch import Asked, Down, Out, Reply
from submerge_aggregator.downlink import Inbound
from submerge_aggregator.downlink.identity import PeerIdentity
from submerge_aggregator.questions import learnt as learnt_view
from submerge_aggregator.questions import survey
from submerge_aggregator.questions.views import NodeView
from submerge_aggregator.readable import checked
from submerge_aggregator.refusals import Refusals
from submerge_aggregator.store import Store
from submerge_aggregator.worker import CommitWorker
from submerge_bridges.flower.carrying import Parcel, ParcelMessage
from submerge_bridges.flower.group import FlowerGroup
from submerge_client import clock
from submerge_client.memory.entropy import SystemEntropy
from submerge_proto.wire import codec

ANY_LIFE = Incarnation(LATEST, 0)
"""The incarnation in whose name the root is asked before a client's life has a name: it is created
above every floor, no client draws it, and a join leaves nothing in a store."""

BY_FLOWER = PeerIdentity("broker")
"""What stands for a node's name: the SuperLink, as a broker does."""


class FlowerRoot:
    """The root of one group.

    Parameters
    ----------
    group : FlowerGroup
    store : path
        The database of all that it has acknowledged; what is in it is counted on.
    now : callable
        The clocks.

    Raises
    ------
    UsageError
        If the store is in use, damaged, or of something else.
    """

    def __init__(self, group: FlowerGroup, store: Path, now: Callable[[], Now] = clock.now) -> None:
        self._group = group
        plans = checked({group.name: group.plan}, coarse=False)
        settings = group.root_settings

        def make_node() -> AggregatorNode:
            return AggregatorNode(settings, plans, SystemEntropy())

        refusals = Refusals(lambda: now().steady)
        # None of a Flower federation's nodes is an aggregator.
        admission = AdmissionControl(AdmissionRules(aggregators=()))
        self._answers: dict[str, list[ParcelMessage]] = {}
        self._worker = CommitWorker(
            *(make_node, Store(store), now), refusals=refusals, admission=admission
        )
        self._take_out(self._worker.start())

    def close(self) -> None:
        """Close the store."""
        self._worker.close()

    # -- rounds ----------------------------------------------------------------------

    def instruction(self, node: str) -> Parcel:
        """Return what a node is to have: answers to its reports, to a join, and the newest model.

        The answers go once. Without an answer to a join the node reads nothing in this round.
        """
        schema = self._group.schema.canonical
        join = Join(Stamp(node, self._group.name, ANY_LIFE, 0), b"", (), schema)
        outs = self._worker.commit_batch(
            [self._inbound(node, ParcelMessage("join", codec.encode(join)))]
        )
        said = [ParcelMessage(out.kind, out.data) for out in outs if isinstance(out, Down)]
        return (*self._answers.pop(node, ()), *said)

    def take(self, replies: Mapping[str, Parcel]) -> None:
        """Take what nodes have sent, in one transaction, and make a model of it.

        replies : by the node that Flower names
        """
        inbound = [
            self._inbound(node, carried) for node, parcel in replies.items() for carried in parcel
        ]
        if inbound:
            self._take_out(self._worker.commit_batch(inbound))
        self._ask(lambda _, __: None, Flush())

    def _inbound(self, node: str, carried: ParcelMessage) -> Inbound:
        return Inbound(*carried, node, False, _ignore, _ignore, identity=BY_FLOWER)

    def _take_out(self, outs: list[Out]) -> None:
        """Lay up answers; the newest model goes with each instruction."""
        for out in outs:
            if isinstance(out, Down) and out.kind == "answer":
                self._answers.setdefault(out.to, []).append(ParcelMessage(out.kind, out.data))

    # -- what it knows ---------------------------------------------------------------

    @property
    def refused(self) -> int:
        """Messages that were not taken."""
        return sum(self._worker.refusals.counts.values())

    def counts(self) -> Counts:
        """Return the readings that it has counted, of all nodes."""

        def counted(node: AggregatorNode, _: Now) -> Counts:
            ledger = node.ledger(self._group.name)
            return Counts() if ledger is None else ledger.counts()

        found: Counts = self._ask(counted)
        return found

    def nodes(self) -> list[NodeView]:
        """Return the nodes that have reported, and the rows of each."""
        name = self._group.name
        found: list[NodeView] = self._ask(lambda node, now: survey.nodes(node, now, name))
        return found

    def learnt(self) -> Learnt:
        """Return what a model file holds of the group.

        Raises
        ------
        UsageError
            If there is no model yet.
        """
        name = self._group.name
        found: Learnt = self._ask(lambda node, now: learnt_view.learnt(node, now, name))
        if found.model.summary is None:
            group = self._group
            opens = group.scaling == "fleet" and not found.model.counts.learnt
            settles = (
                f" {group.scaling_rows} rows settle the scaling (scaling_rows)," if opens else ""
            )
            raise UsageError(
                f"there is no model of group {name} yet:{settles} what is read in one round arrives"
                " in the next; run more rounds"
            )
        return found

    def _ask(self, question: Callable[[AggregatorNode, Now], Any], event: Any = None) -> Any:
        """Ask the machine, after an event."""
        outs = self._worker.commit_batch([Asked(event, question, _ignore)])
        (value,) = (out.value for out in outs if isinstance(out, Reply))
        if isinstance(value, SubmergeError):
            raise value
        return value


def _ignore(*_: Any) -> None:
    """Do nothing: what goes out is in what a batch returns."""
