"""How long an order at the root takes to a client three levels down, over gRPC and MQTT.

`python benchmarks/orders.py`: some thirty seconds. Reports are an hour apart. The time is from when
the root has committed the order to when the client has applied it, by the clock of one machine.
"""

import argparse
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.broker import Mosquitto
from support.chain import CHAIN, CLIENT, Chain
from support.kills.configs import OverGrpc, OverMqtt, Way
from support.patience import until
from support.programs import Programs, free_port


def measured(way: Way, orders: int) -> list[float]:
    """Return the times of some orders, in seconds: pause and resume in turn."""
    with Programs() as programs:
        chain = Chain(way, programs)
        return [_one(chain, number) for number in range(orders)]


def _one(chain: Chain, number: int) -> float:
    verb, done = [("pause", "paused"), ("resume", "resumed")][number % 2]
    heard, given = len(chain.running[CLIENT].lines), len(chain.running["root"].lines)
    chain.order("nodes", "learn", verb, CLIENT, "--anyway")

    def applied() -> list[float]:
        lines = list(chain.running[CLIENT].lines)[heard:]
        return [line.at for line in lines if f"learning {done}" in line.what]

    until(applied)
    # The root logs an order after it has committed it.
    (ordered,) = [
        line.at for line in chain.running["root"].lines[given:] if line.what == "operator command"
    ]
    time.sleep(0.5)  # until it is confirmed: the next order is pushed by itself
    return max(0.0, applied()[0] - ordered)


def main() -> None:
    """Print a line for each transport."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--orders", type=int, default=20)
    orders = parser.parse_args().orders
    with tempfile.TemporaryDirectory() as folder:
        broker = Mosquitto(Path(folder))
        broker.start()
        try:
            grpc = OverGrpc({node: free_port() for node in CHAIN})
            for name, way in {"gRPC": grpc, "MQTT": OverMqtt(broker.port)}.items():
                times = measured(way, orders)
                median, worst = 1e3 * statistics.median(times), 1e3 * max(times)
                print(f"{name}: {orders} orders, median {median:.0f} ms, worst {worst:.0f} ms")
        finally:
            broker.stop()


if __name__ == "__main__":
    main()
