"""CARE to Compare (Gück et al. 2024): wind turbines of three farms, a row every ten minutes.

`Wind Farm A/event_info.csv` names the events; `Wind Farm A/datasets/ID.csv` has the rows:
`time_stamp;asset_id;id;train_test;status_type_id;sensors...`. Rows of the year that is marked
`train` are learnt where the status is normal (0 or 2). Of the others, those between an anomaly's
first and last row count as faulty.
"""

import csv
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from real_plants.case import Array, Case, PlantSet, varying

HEAD = ("time_stamp", "asset_id", "id", "train_test", "status_type_id")
NORMAL = ("0", "2")


def load(folder: Path) -> Iterator[Case]:
    """Yield a case for each event."""
    for info in sorted(folder.glob("*/event_info.csv")):
        with info.open(newline="") as file:
            events = {row["event_id"]: row for row in csv.DictReader(file, delimiter=";")}
        for path in sorted(info.parent.glob("datasets/*.csv"), key=lambda each: int(each.stem)):
            if path.stem in events:
                yield _case(f"{info.parent.name}/{path.stem}", path, events[path.stem])


def _case(name: str, path: Path, event: dict[str, str]) -> Case:
    with path.open(newline="") as file:
        table = csv.DictReader(file, delimiter=";")
        names = [each for each in table.fieldnames or () if each not in HEAD]
        learnt, judged, faulty = [], [], []
        first, last = int(event["event_start_id"]), int(event["event_end_id"])
        anomaly = event["event_label"] == "anomaly"
        for row in table:
            values = [float(row[each] or "nan") for each in names]
            if row["train_test"] != "train":
                judged.append(values)
                faulty.append(anomaly and first <= int(row["id"]) <= last)
            elif row["status_type_id"] in NORMAL:
                learnt.append(values)
    history: Array = np.array(learnt)
    kept, channels = varying(history, names)
    return Case(name, channels, history[:, kept], np.array(judged)[:, kept], np.array(faulty))


SET = PlantSet(
    "CARE to Compare",
    "https://zenodo.org/records/10958775",
    "care",
    "Wind Farm A/event_info.csv and Wind Farm A/datasets/*.csv, and so B and C",
    load,
)
