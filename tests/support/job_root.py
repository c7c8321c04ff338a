"""A root that opens the jobs that come on its standard input, as a program: for tests.

    python -m support.job_root --config root.toml --log-json

A line of JSON is a job without what the root knows itself, as `{"id": "job-1", "kind": "kmeans"}`,
or `{"cancel": "job-1"}`, or `{"readings": 1}`, to count what has been learnt, or
`{"landmarks": 1}`, to have landmarks chosen again. Lines of standard
output are what its board hears; arrays are their bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import signal
import sys
import threading
from typing import Any

from submerge import SubmergeError
from submerge.aggregator.node import AggregatorNode
from submerge.jobs.job import Job, JobOutcome
from submerge.jobs.machine import JobProgress
from submerge.jobs.roster import names, written
from submerge.protocol.machine import Now
from submerge_aggregator.assembly import server_of
from submerge_aggregator.config import load
from submerge_aggregator.server import Server
from submerge_client import logs


def say(**facts: Any) -> None:
    """Write a line."""
    sys.stdout.write(json.dumps(facts) + "\n")
    sys.stdout.flush()


class SpokenBoard:
    """Writes down what it hears."""

    def opened(self, job: Job, wall: float) -> None:
        say(event="opened", job=job.id)

    def progressed(self, progress: JobProgress, wall: float) -> None:
        say(event="progressed", **progress._asdict())

    def ended(self, outcome: JobOutcome, wall: float) -> None:
        answer = outcome.answer
        say(
            event="ended",
            job=outcome.job.id,
            failure=outcome.failure,
            opened=sorted(names(outcome.opened)),
            stayed=written(outcome.stayed),
            left={name: leaver.why for name, leaver in outcome.left.items()},
            declined=dict(outcome.declined),
            rounds=outcome.rounds,
            attempts=outcome.attempts,
            answer=None if answer is None else {k: v.tobytes().hex() for k, v in answer.items()},
        )


def counted(node: AggregatorNode, _: Now) -> int:
    """Return the readings that the root counts of its only group, under all of its schemas."""
    ledger = node.ledger(node.groups[0])
    return 0 if ledger is None else int(ledger.counts().learnt)


async def order(server: Server, line: str) -> None:
    """Open or cancel a job."""
    facts = json.loads(line)
    try:
        if "cancel" in facts:
            say(event="cancelled", was_there=await server.jobs.cancel(facts["cancel"]))
            return
        facts.setdefault("group", "room")
        if "landmarks" in facts:
            job = await server.landmarks.choose_again(facts["group"])
            say(event="chooses", number=facts["landmarks"], job=job)
            return
        if "readings" in facts:
            say(event="counted", number=facts["readings"], readings=await server.ask(counted))
            return
        schema = await server.ask(lambda node, _: node.ledger(facts["group"]).schema)
        job = Job.read({"fingerprint": schema.fingerprint, "width": schema.width} | facts)
        await server.jobs.open(job)
    except SubmergeError as error:
        say(event="refused", why=str(error))


async def serve(path: str) -> None:
    """Run the root until a signal ends it."""
    server = server_of(load(path, os.environ))
    server.jobs.effects.board = SpokenBoard()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGTERM, server.stop)

    def read() -> None:
        for line in sys.stdin:
            asyncio.run_coroutine_threadsafe(order(server, line), loop)

    threading.Thread(target=read, daemon=True).start()
    await server.run()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", required=True)
    parser.add_argument("--log-json", action="store_true")
    given = parser.parse_args()
    logs.begin("debug", as_json=True)
    asyncio.run(serve(given.config))
    os._exit(0)  # the thread that reads waits for its input
