"""The client app and the strategy, with a grid in this process in Flower's place."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import submerge.flower
from submerge.flower import FlowerGroup
from submerge_files import model_file
from submerge_proto.wire import codec
from support.flower_rounds import row

if os.environ.get("SUBMERGE_FLOWER") != "required":
    pytest.importorskip("flwr", reason="Flower has an environment of its own: make test-flower")

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # what Flower imports
    from flwr.app import ConfigRecord, Context, Error, Message, RecordDict
    from flwr.serverapp import Grid
    from flwr.supercore.task_identity import TaskIdentity

GROUP = FlowerGroup("pumps", ("a", "b", "c"), rank=1, scaling="fleet", scaling_rows=40)


# A process of Flower knows which run it is of; messages are made out to it.
TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1


class LocalGrid(Grid):
    """A federation in one process: apps are called one after the other.

    lost : called with a message; whether its client raises
    """

    def __init__(self, app: Any, nodes: int, lost: Callable[[Message], bool]) -> None:
        self.contexts = {
            node: Context(1, node, {"partition-id": node}, RecordDict(), {})
            for node in range(nodes)
        }
        self.app, self._lost = app, lost
        self.sent: list[Message] = []

    def set_run(self, run: Any) -> None: ...

    @property
    def run(self) -> Any: ...

    def create_message(self, *args: Any, **kwargs: Any) -> Message:
        raise NotImplementedError

    def get_node_ids(self) -> Iterable[int]:
        return list(self.contexts)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        raise NotImplementedError

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        raise NotImplementedError

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        replies = []
        for message in messages:
            self.sent.append(message)
            if self._lost(message):
                replies.append(Message(Error(code=0, reason="switched off"), reply_to=message))
            else:
                context = self.contexts[message.metadata.dst_node_id]
                replies.append(self.app(message, context))
        return replies


def rows(message: Message, context: Context, taken: int) -> np.ndarray:
    """As many rows as the server's configuration says."""
    n = message.content["config"]["rows"]
    return np.array([row(context.node_id, number, 3) for number in range(taken, taken + n)])


def federation(
    store: Path | None = None, lost: Callable[[Message], bool] = lambda _: False
) -> tuple[Any, LocalGrid]:
    grid = LocalGrid(submerge.flower.client_app(GROUP, rows), 4, lost)
    return submerge.flower.SubmergeStrategy(GROUP, store=store, min_nodes=4), grid


def test_a_run_counts_each_reading_and_gives_a_model(tmp_path: Path) -> None:
    """Three rounds of four clients: the saved file and the result's array hold all readings."""
    strategy, grid = federation()
    result = strategy.start(grid, num_rounds=3, train_config=ConfigRecord({"rows": 20}))
    strategy.save(tmp_path / "pumps.model")
    (array,) = result.arrays.values()
    (tmp_path / "result.model").write_bytes(array.numpy().tobytes())
    saved, same = (model_file.read(tmp_path / f"{name}.model") for name in ("pumps", "result"))

    assert 4 * 3 * 20 == strategy.root.counts().learnt == saved.model.counts.learnt
    assert codec.encode(saved.model) == codec.encode(same.model)
    assert ("a", "b", "c") == saved.schema.names


def test_a_round_that_fails_is_made_up_for() -> None:
    """A client that raises in a round has lost nothing: it has read nothing either."""

    def lost(message: Message) -> bool:
        ours = message.content["submerge"]
        return message.metadata.dst_node_id == 1 and ours["server-round"] == 2

    strategy, grid = federation(lost=lost)
    strategy.start(grid, num_rounds=3, train_config=ConfigRecord({"rows": 20}))

    assert 4 * 3 * 20 - 20 == strategy.root.counts().learnt
    assert 0 == strategy.root.counts().lost


def test_a_later_run_goes_on_with_the_store(tmp_path: Path) -> None:
    """Clients keep their state, the server its store: nothing is counted again."""
    strategy, grid = federation(tmp_path / "root.db")
    strategy.start(grid, num_rounds=2, train_config=ConfigRecord({"rows": 20}))
    strategy.close()
    later = submerge.flower.SubmergeStrategy(GROUP, store=tmp_path / "root.db")
    later.start(grid, num_rounds=1, train_config=ConfigRecord({"rows": 5}))

    assert 4 * (2 * 20 + 5) == later.root.counts().learnt


def test_an_app_may_do_other_things_beside() -> None:
    """Our function under an action of its own leaves the app's `train` and its state alone."""
    from flwr.clientapp import ClientApp

    app = ClientApp()
    app.train("submerge")(submerge.flower.train_function(GROUP, rows))
    grid = LocalGrid(app, 2, lambda _: False)
    for context in grid.contexts.values():
        context.state["other"] = ConfigRecord({"epoch": 3})
    strategy = submerge.flower.SubmergeStrategy(GROUP, message_type="train.submerge")
    strategy.start(grid, num_rounds=2, train_config=ConfigRecord({"rows": 30}))

    assert 2 * 2 * 30 == strategy.root.counts().learnt
    assert {"train.submerge"} == {message.metadata.message_type for message in grid.sent}
    assert {3} == {context.state["other"]["epoch"] for context in grid.contexts.values()}


def test_a_reply_of_another_app_is_passed_over() -> None:
    """A client whose replies are not ours costs its readings, and not the run."""
    strategy, grid = federation()
    honest, names = grid.app, set[int]()

    def app(message: Message, context: Context) -> Message:
        if context.node_id != 2:
            return honest(message, context)
        names.add(context.node_id)
        noise = ConfigRecord({"kinds": ["report"], "messages": [b"noise"]})
        wrong = ConfigRecord({"kinds": [1], "messages": [b"noise"]})
        odd = message.content["submerge"]["server-round"] % 2
        return Message(content=RecordDict({"submerge": wrong if odd else noise}), reply_to=message)

    grid.app = app
    strategy.start(grid, num_rounds=3, train_config=ConfigRecord({"rows": 20}))

    assert {2} == names
    assert 3 * 3 * 20 == strategy.root.counts().learnt
