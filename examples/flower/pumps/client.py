"""The client app: each pump learns its own rows, and sends all that it has learnt so far.

What a client sends takes the place of what the server had of it. So Flower may lose a message,
repeat it, or run an instruction again: no reading counts twice, and none that was kept is lost.
"""

from flwr.app import ConfigRecord, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp

import submerge
from pumps.task import RANK, SCHEMA, readings

app = ClientApp()


@app.train()
def train(message, context):
    kept = context.state.config_records.get("submerge", {})
    engine = submerge.loads(kept["engine"]) if kept else submerge.SAPCA(RANK, schema=SCHEMA)
    taken = int(kept.get("taken", 0))
    rows = readings(context.node_config["partition-id"], taken)
    engine.partial_fit(SCHEMA.scaled(rows))
    taken += len(rows)
    # Kept together: rows that were taken are those that the engine has learnt.
    ours = ConfigRecord({"engine": submerge.dumps(engine), "taken": taken})
    context.state["submerge"] = ours
    content = RecordDict({"submerge": ours, "metrics": MetricRecord({"rows": taken})})
    return Message(content=content, reply_to=message)
