"""How large a fleet one process simulates: real subspaces, d = 64, r = 8, one virtual hour.

A reading every 30 s, a report every 5 min, three levels of aggregators, no faults; each
size in a process of its own. `python benchmarks/simulate.py 1000 10000` prints the table
of simulate.md.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from submerge_lab.simulator import Plan, run

HEAD = (
    "| clients | readings | counted | violations | core s | seconds | MiB | degrees"
    " | largest report |"
)


def measured(nodes: int) -> str:
    plan = Plan(
        nodes=nodes,
        fan_in=100 if nodes > 1000 else 10,
        hours=1,
        reading_every_s=30,
        report_every_s=300,
        dim=64,
        rank=8,
        faults="none",
    )
    began, used = time.perf_counter(), time.process_time()
    got = run(plan, seed=1)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"| {nodes:,} | {got.generated:,} | {got.counted:,} | {len(got.violations)}"
        f" | {used:.0f} | {seconds:.0f} | {mebibytes:.0f} | {got.angle:.4f}"
        f" | {got.largest_report:,} |"
    )


def main() -> None:
    print(HEAD)
    print("|" + "---|" * (HEAD.count("|") - 1))
    for nodes in map(int, sys.argv[1:] or ["1000"]):
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            print(pool.submit(measured, nodes).result(), flush=True)


if __name__ == "__main__":
    main()
