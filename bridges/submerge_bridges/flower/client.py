"""client_app(), train_function(): a Flower client that is a node of a group.

The state of the node is in `context.state`, in one record of our own; an app may keep others there.
A round that fails stores nothing of ours, and its rows are read again.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from flwr.app import ConfigRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

from submerge import PeerError
from submerge_bridges.flower.carrying import RECORD, parcel_of, values_of
from submerge_bridges.flower.group import FlowerGroup, node_name
from submerge_bridges.flower.keeping import StateRecords
from submerge_bridges.flower.life import ClientLife

READS = "reads"
"""Whether an instruction asks for rows; without it, for what waits."""

Rows = Callable[[Message, Context, int], Any]
"""rows(message, context, taken): the rows (n, channels) that are new to this client, in its order:
those after the first `taken`. An empty array if there are none."""


def client_app(group: FlowerGroup, rows: Rows) -> ClientApp:
    """Return a Flower client app that learns a client's rows in a group.

    Parameters
    ----------
    group : FlowerGroup
        The same as the server's.
    rows : callable
        `rows(message, context, taken)` returns new rows (n, channels) as an array, in the units of
        the channels; NaN is a gap. `taken` is how many rows it has returned before, and is kept
        with what was learnt of them: return those that follow. Each row counts once.

    Returns
    -------
    ClientApp
        It serves `train`.

    See Also
    --------
    train_function : The same, for an app that does more than this.
    """
    app = ClientApp()
    app.train()(train_function(group, rows))
    return app


def train_function(group: FlowerGroup, rows: Rows) -> Callable[[Message, Context], Message]:
    """Return what carries out an instruction of `SubmergeStrategy`, for an app of one's own.

    Register it under an action, and name that to the strategy:

        app.train("submerge")(submerge.flower.train_function(group, rows))
        strategy = submerge.flower.SubmergeStrategy(group, message_type="train.submerge")

    Parameters
    ----------
    group, rows
        As in `client_app`.
    """

    def train(message: Message, context: Context) -> Message:
        asked = _record(message.content)
        records = StateRecords(context.state.config_records.get(RECORD, {}))
        life = ClientLife(group, node_name(context.node_id), records)
        life.begin(parcel_of(asked))
        read = 0
        if asked.get(READS) and not life.is_behind:
            read = life.read(rows(message, context, records.taken))
        parcel = life.end()
        # Last: what raises before has changed nothing.
        context.state[RECORD] = ConfigRecord(records.values)
        metrics = {"rows": read, "waiting": life.waiting, "unsent": life.unsent}
        content = {RECORD: ConfigRecord(values_of(parcel)), "metrics": MetricRecord(metrics)}
        return Message(content=RecordDict(content), reply_to=message)

    return train


def _record(content: RecordDict) -> ConfigRecord:
    """Return our record of an instruction."""
    record = content.config_records.get(RECORD)
    if record is None:
        raise PeerError(
            f"expected a record {RECORD!r} of SubmergeStrategy in the message, got none"
        )
    return record
