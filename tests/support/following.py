"""A process of `submerge alarms --follow`, and what it tells."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

from support.patience import PATIENCE_S
from support.programs import SUBMERGE

Event = dict[str, Any]


class Follower(NamedTuple):
    """One that runs.

    reported : the events, as they come
    said : lines of what else it says
    """

    process: subprocess.Popen[bytes]
    reported: list[Event]
    said: list[bytes]


@contextmanager
def following(store: Path, *, before: Sequence[str] = ()) -> Iterator[Follower]:
    """A follower at the aggregator with that store; `before` stands before the command."""
    reported: list[Event] = []
    said: list[bytes] = []
    with subprocess.Popen(
        [*before, SUBMERGE, "alarms", "--follow", "--json", "--store", store],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        pipes = (map(json.loads, process.stdout), reported), (process.stderr, said)
        readers = [threading.Thread(target=into.extend, args=(pipe,)) for pipe, into in pipes]
        for reader in readers:
            reader.start()
        try:
            yield Follower(process, reported, said)
        finally:
            process.kill()
            for reader in readers:
                reader.join(PATIENCE_S)
