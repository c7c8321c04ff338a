"""How large a fleet one process simulates: real subspaces, d = 64, r = 8, one virtual hour.

A reading every 30 s, a report every 5 min, three levels of aggregators, no faults; each
size in a process of its own. `python benchmarks/simulate.py 1000 10000` prints the table
of simulate.md, and with --large the table of large fleets.
"""

import os

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import multiprocessing
import resource
import sys
import time
from concurrent.futures import ProcessPoolExecutor

from submerge_lab.simulate.run import uncollected
from submerge_lab.simulator import Plan, run
from submerge_lab.simulator.large import run_large

HEAD = (
    "| clients | readings | counted | violations | core s | seconds | MiB | degrees"
    " | largest report | reports compared | differ by |"
)


def measured(nodes: int, *, large: bool) -> str:
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
    if large:
        with uncollected():
            got = run_large(plan, seed=1)
    else:
        got = run(plan, seed=1)
    seconds, used = time.perf_counter() - began, time.process_time() - used
    sample = "-", "-"
    if got.sample is not None:
        sample = f"{got.sample.reports:,}", f"{got.sample.worst:.0e}"
    mebibytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return (
        f"| {nodes:,} | {got.generated:,} | {got.counted:,} | {len(got.violations)}"
        f" | {used:.0f} | {seconds:.0f} | {mebibytes:.0f} | {got.angle:.4f}"
        f" | {got.largest_report:,} | {sample[0]} | {sample[1]} |"
    )


def main() -> None:
    print(HEAD)
    print("|" + "---|" * (HEAD.count("|") - 1))
    large = "--large" in sys.argv
    for nodes in map(int, [each for each in sys.argv[1:] if each.isdigit()] or ["1000"]):
        context = multiprocessing.get_context("spawn")
        with ProcessPoolExecutor(1, mp_context=context) as pool:
            print(pool.submit(measured, nodes, large=large).result(), flush=True)


if __name__ == "__main__":
    main()
