"""The server app: merges what the pumps have learnt. Nothing is averaged."""

import time
from logging import INFO, WARNING

import numpy as np
from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from flwr.common.logger import log
from flwr.serverapp import ServerApp
from flwr.serverapp.strategy import Strategy

import submerge
from pumps.task import RANK, SCHEMA

app = ServerApp()


class Merging(Strategy):
    """Keeps the newest state of each client, and merges them after each round."""

    def __init__(self, min_nodes):
        self.min_nodes = min_nodes
        self.newest = {}  # node -> its subspace

    def configure_train(self, server_round, arrays, config, grid):
        while len(nodes := sorted(grid.get_node_ids())) < self.min_nodes:
            time.sleep(0.5)
        for node in nodes:
            content = RecordDict({"config": ConfigRecord({"server-round": server_round})})
            yield Message(content, dst_node_id=node, message_type="train")

    def aggregate_train(self, server_round, replies):
        for reply in replies:
            node = reply.metadata.src_node_id
            if reply.has_error():
                log(WARNING, "no reply of node %s: %s", node, reply.error.reason)
                continue
            try:
                engine = submerge.loads(reply.content["submerge"]["engine"])
                if engine.subspace.schema != SCHEMA.fingerprint:
                    raise submerge.PeerError("its channels are others")
            except (KeyError, submerge.PeerError) as error:
                log(WARNING, "reply of node %s refused: %s", node, error)
                continue
            self.newest[node] = engine.subspace
        model = self.model()
        log(INFO, "%d readings of %d pumps", model.weight, len(self.newest))
        arrays = {"basis": model.basis, "mean": model.mean, "sigma": model.sigma}
        arrays["weight"] = np.array([model.weight])
        arrays = ArrayRecord({name: Array(each) for name, each in arrays.items()})
        return arrays, MetricRecord({"readings": model.weight, "pumps": len(self.newest)})

    def model(self):
        return submerge.merge(*self.newest.values(), rank=RANK)

    def configure_evaluate(self, server_round, arrays, config, grid):
        return []

    def aggregate_evaluate(self, server_round, replies):
        return None

    def summary(self):
        log(INFO, "submerge: %d channels, rank %d", SCHEMA.dim, RANK)


@app.main()
def main(grid, context):
    config = context.run_config
    strategy = Merging(config["min-nodes"])
    result = strategy.start(grid, ArrayRecord(), num_rounds=config["num-server-rounds"])
    np.savez(config["model"], **{name: each.numpy() for name, each in result.arrays.items()})
    print(f"{strategy.model().weight:.0f} readings are in {config['model']}")
