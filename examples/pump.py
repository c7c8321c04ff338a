"""A simulated pump that prints a line of JSON for each reading, for a client to read.

    python examples/pump.py --rows 20000 --rate 100 | submerge client --config client.toml

Flow, pressure, current and temperature follow one hidden load. In the last twenty rows the
flow meter reads 6 l/min too high.
"""

import json
import math
import os
import random
import sys
import time

given = dict(zip(sys.argv[1::2], sys.argv[2::2], strict=False))
rows, rate = int(given.get("--rows", 100)), float(given.get("--rate", 0))
for i in range(rows):
    load = 1 + 0.3 * math.sin(i / 30) + random.gauss(0, 0.05)
    flow = 40 * load + random.gauss(0, 0.4) + (6 if i >= rows - 20 else 0)
    pressure = 3 + 1.5 * load**2 + random.gauss(0, 0.02)
    current = 4 + 6 * load + random.gauss(0, 0.1)
    temperature = 45 + 8 * load + random.gauss(0, 0.3)
    try:
        print(json.dumps([flow, pressure, current, temperature]), flush=True)
    except BrokenPipeError:
        # The reader has gone. Discard what is still buffered, or Python would complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit()
    if rate:
        time.sleep(1 / rate)
