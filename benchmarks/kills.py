"""Real processes killed as by a power cut: what was acknowledged is counted, and counted once.

`python benchmarks/kills.py --kills 200 --over grpc` runs a fleet of seven processes, prints
kills and recoveries as they come, the figures at the end, and exits 1 on a violation. What is
judged, and how: tests/support/kills. `--over mqtt` needs Mosquitto.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from support.kills import OverGrpc, OverMqtt, Way, run


@contextmanager
def way(over: str) -> Iterator[Way]:
    if over == "grpc":
        yield OverGrpc.on_free_ports()
        return
    from support.broker import Mosquitto

    with tempfile.TemporaryDirectory() as folder:
        broker = Mosquitto(Path(folder))
        broker.start()
        try:
            yield OverMqtt(broker.port)
        finally:
            broker.stop()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--over", choices=("grpc", "mqtt"), default="grpc")
    parser.add_argument("--seed", type=int, default=1, help="of the plan of kills")
    options = parser.parse_args()
    began = time.monotonic()

    def tell(what: str) -> None:
        print(f"{time.monotonic() - began:6.1f} s  {what}", flush=True)

    with way(options.over) as chosen:
        result = run(chosen, seed=options.seed, kills=options.kills, tell=tell)
    print(f"over {options.over}, seed {options.seed}, {time.monotonic() - began:.0f} s")
    print(result.text())
    sys.exit(bool(result.findings.all))


if __name__ == "__main__":
    main()
