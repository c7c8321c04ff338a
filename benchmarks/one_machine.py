"""What `submerge up` weighs: a client and its root in one process, with 50 channels and scores.

A real process, fed lines of JSON, and what the kernel says of it: VmRSS, which counts shared
libraries in full, and PSS, which counts of each page its share. It measures the scale of its
channels first, and is fed until it scores and its memory no longer grows.
"""

import time
from typing import NamedTuple

import measure
import processes
from footprint import lines
from report import Table, command

CHANNELS, ROWS, PER_S = 50, 9000, 100

CONFIG = """\
node = "desk"
folder = "{folder}/kept"
[sensor]
kind = "ndjson"
[schema]
scaling = "fleet"
channels = [{channels}]
{more}
"""

KINDS = {
    "alone": "",
    "with [status]": '[status]\naddress = "127.0.0.1:0"\n',
    "with [listen.grpc]": '[listen.grpc]\naddress = "127.0.0.1:0"\ninsecure = true\n',
}


class Box(NamedTuple):
    """A row of the table."""

    kind: str
    rows: int
    started: float
    resident: float
    most: float
    share: float
    per_row: float
    threads: int


def box(kind: str, rows: int) -> Box:
    """Feed a machine, and weigh it."""
    fed = lines(1000, CHANNELS)
    with processes.site() as site:
        path = site.folder / "box.toml"
        channels = ", ".join(f'"c{i}"' for i in range(CHANNELS))
        path.write_text(CONFIG.format(folder=site.folder, channels=channels, more=KINDS[kind]))
        process = site.run(processes.SUBMERGE, "up", "--config", path, name="up", stdin=-1)
        pipe = process.popen.stdin
        time.sleep(5.0)
        started, spent = process.resident, process.cpu_s
        began = time.perf_counter()
        for i in range(rows):
            pipe.write(fed[i % len(fed)])
            pipe.flush()
            time.sleep(max(0.0, began + (i + 1) / PER_S - time.perf_counter()))
        weighed = process.resident, process.most_resident, process.proportional
        per_row, threads = (process.cpu_s - spent) / rows, process.threads
        pipe.close()
        if process.popen.wait(processes.WITHIN_S):
            raise RuntimeError(f"it failed:\n{process.said()}")
    mebibytes = (each / 2**20 for each in (started, *weighed))
    return Box(kind, rows, *mebibytes, per_row * 1e6, threads)


def room(quick: bool) -> list[Table]:
    """Weigh a machine on its own, and one that others may join; `quick`: fewer rows."""
    rows, load = ROWS // 2 if quick else ROWS, processes.load()
    return [
        Table(
            f"submerge up, {CHANNELS} channels, scaling measured, with scores",
            {
                "": "",
                "rows": ",d",
                "MiB, started": ".1f",
                "MiB": ".1f",
                "most": ".1f",
                "PSS": ".1f",
                f"µs/row at {PER_S}/s": ".0f",
                "threads": "d",
            },
            [box(kind, rows) for kind in measure.progress(KINDS, "kinds")],
            f"Load when it began: {load}.",
        )
    ]


if __name__ == "__main__":
    command(room)
