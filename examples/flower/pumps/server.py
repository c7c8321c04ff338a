"""The server app: the root of the group, for the rounds of one run."""

from flwr.serverapp import ServerApp

from pumps.task import GROUP
from submerge.flower import SubmergeStrategy

app = ServerApp()


@app.main()
def main(grid, context):
    config = context.run_config
    strategy = SubmergeStrategy(GROUP, min_nodes=config["min-nodes"])
    strategy.start(grid, num_rounds=config["num-server-rounds"])
    strategy.save(config["model"])
    print(f"{strategy.root.counts().learnt} readings are in {config['model']}")
