"""Write the recorded readings of a simulated pump: three weeks, and the Monday after them.

    python examples/pump_history.py
    submerge fit history.csv -o pump.model
    submerge detect monday.csv --model pump.model --plot monday.png

A row a minute. Flow, pressure, current and temperature follow one hidden load. On Monday from
14:00 to 15:30 the flow meter reads 6 l/min too high.
"""

import csv
import math
import random
from datetime import UTC, datetime, timedelta

random.seed(1)
begin, days = datetime(2026, 3, 2, tzinfo=UTC), 21
for name, first, last in (("history.csv", 0, days), ("monday.csv", days, days + 1)):
    with open(name, "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["time", "flow", "pressure", "current", "temperature"])
        for minute in range(1440 * first, 1440 * last):
            load = 1 + 0.3 * math.sin(minute / 200) + random.gauss(0, 0.05)
            flow = 40 * load + random.gauss(0, 0.4)
            if name == "monday.csv" and 14 * 60 <= minute % 1440 < 15 * 60 + 30:
                flow += 6
            pressure = 3 + 1.5 * load**2 + random.gauss(0, 0.02)
            current = 4 + 6 * load + random.gauss(0, 0.1)
            temperature = 45 + 8 * load + random.gauss(0, 0.3)
            time = (begin + timedelta(minutes=minute)).isoformat()
            numbers = flow, pressure, current, temperature
            table.writerow([time, *(f"{number:.3f}" for number in numbers)])
    print(f"{name}: {1440 * (last - first):,} rows")
