"""What client and server agree on, and where a pump's readings come from."""

import numpy as np

from submerge import Channel, Scaling, Schema

SCHEMA = Schema(
    (
        Channel("flow", "m3/h"),
        Channel("pressure", "bar"),
        Channel("speed", "rpm"),
        Channel("power", "kW"),
        Channel("temperature", "C"),
    ),
    scaling=Scaling(offset=(20, 2, 1000, 7, 50), scale=(6, 1, 300, 5, 4)),
)
RANK = 2
ROWS = 200  # rows that a pump reads in one round


def readings(pump, first, n=ROWS):
    """Rows first, ..., first + n - 1 of one pump. Here they are generated, always the same."""
    rows = []
    for number in range(first, first + n):
        rng = np.random.default_rng((pump, number))
        load, heat = rng.uniform(0.3, 1), rng.standard_normal()
        speed = 1500 * load + rng.normal(0, 5)
        flow = speed / 50 + rng.normal(0, 0.2)
        pressure = 4 * load**2 + rng.normal(0, 0.02)
        power = 0.12 * flow * pressure + 1 + rng.normal(0, 0.05)
        rows.append((flow, pressure, speed, power, 40 + 15 * load + 2 * heat))
    return np.array(rows)
