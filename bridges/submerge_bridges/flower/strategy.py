"""SubmergeStrategy: a Flower strategy whose server holds the root of a group.

Nothing is averaged: replies are messages of nodes, and the root counts each reading in them once.
What a client reads in one round it sends in the next (`life`). So after the last round there are
further ones without readings, until no client has anything left.
"""

from __future__ import annotations

import shutil
import tempfile
import time
import weakref
from collections.abc import Iterable, Iterator
from logging import INFO, WARNING
from pathlib import Path
from typing import Any

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result, Strategy

from submerge import PeerError, UsageError
from submerge_bridges.flower.carrying import RECORD, Parcel, parcel_of, values_of
from submerge_bridges.flower.client import READS
from submerge_bridges.flower.group import FlowerGroup, node_name
from submerge_bridges.flower.root import FlowerRoot

MODEL = "submerge.model"
"""The array of the result: a model file, as bytes."""

MOST_CLOSING = 8
"""Most rounds after the last one. Two are enough where all answer: one brings the last reports, and
one says that they are held; with a scaling that was settled late, three."""

LOOK_EVERY_S = 0.5


class SubmergeStrategy(Strategy):  # type: ignore[misc]
    """A Flower strategy that learns one model of all clients' rows.

    Parameters
    ----------
    group : FlowerGroup
        The same as the clients'.
    store : path, optional
        The root's database. A later run with the same one goes on counting where this one ended.
        Left out, it is in a temporary folder, and gone with the server.
    min_nodes : int
        Nodes that a round waits for.
    message_type : str
        "train", or "train.ACTION" for the action under which the clients' app serves us.

    Attributes
    ----------
    root : FlowerRoot
        What has been counted.
    """

    def __init__(
        self,
        group: FlowerGroup,
        *,
        store: str | Path | None = None,
        min_nodes: int = 1,
        message_type: str = "train",
    ) -> None:
        self.group = group
        folder = None
        if store is None:
            folder = tempfile.mkdtemp(prefix="submerge-flower-")
            store = Path(folder) / "root.db"
        self.root = FlowerRoot(group, Path(store))
        self._close = weakref.finalize(self, _close, self.root, folder)
        self._min_nodes, self._message_type = min_nodes, message_type
        self._left = 0  # what the nodes that answered have not delivered

    # -- Flower's own ----------------------------------------------------------------

    def start(
        self,
        grid: Grid,
        initial_arrays: ArrayRecord | None = None,
        num_rounds: int = 3,
        timeout: float = 3600,
        train_config: ConfigRecord | None = None,
        **others: Any,
    ) -> Result:
        """Run the rounds, and those that bring what is left; return the model as an array.

        Parameters
        ----------
        grid : Grid
        initial_arrays : ArrayRecord, optional
            Not used: no model goes before the first readings.
        num_rounds, timeout, train_config, **others
            As in Flower. The clients' `rows` finds `train_config` in its message, as "config".

        Returns
        -------
        Result
            `arrays["submerge.model"]` holds a model file as bytes; no array if there is no model.
        """
        arrays = ArrayRecord() if initial_arrays is None else initial_arrays
        result = super().start(grid, arrays, num_rounds, timeout, train_config, **others)
        for number in range(num_rounds + 1, num_rounds + 1 + MOST_CLOSING):
            messages = self._messages(number, ConfigRecord(), grid, reads=False)
            self.aggregate_train(number, grid.send_and_receive(messages, timeout=timeout))
            if not self._left:
                break
        else:
            log(WARNING, "submerge: %d reports wait at clients; run more rounds", self._left)
        result.arrays = self._arrays()
        learnt, nodes = self.root.counts().learnt, len(self.root.nodes())
        log(INFO, "submerge: %d readings of %d nodes", learnt, nodes)
        return result

    def configure_train(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return an instruction for each node."""
        return self._messages(server_round, config, grid, reads=True)

    def aggregate_train(
        self, server_round: int, replies: Iterable[Message]
    ) -> tuple[ArrayRecord | None, MetricRecord | None]:
        """Take the replies, commit what they hold, and make a model of it."""
        parcels: dict[str, Parcel] = {}
        self._left = 0
        for reply in replies:
            name = node_name(reply.metadata.src_node_id)
            if reply.has_error():
                log(WARNING, "submerge: no reply of %s: %s", name, reply.error.reason)
                continue
            try:
                parcels[name] = parcel_of(reply.content.config_records.get(RECORD, {}))
            except PeerError as error:
                log(WARNING, "submerge: reply of %s refused: %s", name, error)
                continue
            self._left += _left_of(reply)
        self.root.take(parcels)
        counts = self.root.counts()
        return None, MetricRecord(
            {
                "replies": len(parcels),
                "nodes": len(self.root.nodes()),
                "learnt": counts.learnt,
                "withheld": counts.withheld,
                "lost": counts.lost,
            }
        )

    def configure_evaluate(
        self, server_round: int, arrays: ArrayRecord, config: ConfigRecord, grid: Grid
    ) -> Iterable[Message]:
        """Return nothing: clients score their rows before they learn them."""
        return []

    def aggregate_evaluate(
        self, server_round: int, replies: Iterable[Message]
    ) -> MetricRecord | None:
        """Return nothing."""
        return None

    def summary(self) -> None:
        """Log what is learnt."""
        group = self.group
        log(INFO, "\t├── submerge group %s: %d channels", group.name, group.width)
        log(INFO, "\t└── rank %s, scaling %s", group.rank, group.scaling)

    # -- what was learnt -------------------------------------------------------------

    def save(self, path: str | Path) -> None:
        """Write the model to a file, for `submerge score`, `detect` and `submerge.Model.load`.

        Raises
        ------
        UsageError
            If there is no model yet, or the file is no older model.
        """
        from submerge_files import model_file

        model_file.save(Path(path), self.root.learnt())

    def close(self) -> None:
        """Close the store. It is done at the end of the process, too."""
        self._close()

    # -- rounds ----------------------------------------------------------------------

    def _messages(
        self, number: int, config: ConfigRecord, grid: Grid, *, reads: bool
    ) -> Iterator[Message]:
        for node_id in self._nodes(grid):
            values = values_of(self.root.instruction(node_name(node_id)))
            ours = ConfigRecord({READS: reads, "server-round": number, **values})
            yield Message(
                content=RecordDict({RECORD: ours, "config": config}),
                message_type=self._message_type,
                dst_node_id=node_id,
                group_id=str(number),
            )

    def _nodes(self, grid: Grid) -> list[int]:
        """Return the nodes of the federation, once there are enough of them."""
        while True:
            found = sorted(grid.get_node_ids())
            if len(found) >= self._min_nodes:
                return found
            log(INFO, "submerge: %d nodes, waiting for %d", len(found), self._min_nodes)
            time.sleep(LOOK_EVERY_S)

    def _arrays(self) -> ArrayRecord:
        from submerge_proto.files import learnt as learnt_file

        try:
            data = learnt_file.packed(self.root.learnt())
        except UsageError as error:
            log(WARNING, "submerge: no model: %s", error)
            return ArrayRecord()
        return ArrayRecord({MODEL: Array(np.frombuffer(data, dtype=np.uint8))})


def _close(root: FlowerRoot, folder: str | None) -> None:
    """Close a root, and delete the folder that was made for its store."""
    root.close()
    if folder is not None:
        shutil.rmtree(folder, ignore_errors=True)


def _left_of(reply: Message) -> int:
    """Return what a client has not delivered, by its own account."""
    metrics = reply.content.metric_records.get("metrics", {})
    counts = (metrics.get("waiting", 0), metrics.get("unsent", 0))
    return sum(int(each) for each in counts if isinstance(each, int | float))
