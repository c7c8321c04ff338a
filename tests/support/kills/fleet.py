"""Fleet: the programs of one run, each of which is started again after it was killed."""

from __future__ import annotations

import itertools
import signal
import sys
import threading
import time
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from submerge.client.pending_finals import CHECKPOINT
from submerge_client.checkpoint import CheckpointFile
from submerge_proto.kept import records
from support.kills import configs
from support.kills.feeding import MARKS, Fed, Feeder, channels
from support.kills.judging import ClientIncarnation, Held
from support.kills.plan import AGGREGATORS, ANYWHERE, CLIENTS, PARENTS
from support.patience import until
from support.programs import Program, Programs

COMES_THERE_S = 5.0
"""A program that does not come to its failpoint by then is killed where it is."""

RUNNER = (sys.executable, "-m", "support.failing")


class Fleet:
    """A fleet that runs.

    Parameters
    ----------
    programs : Programs
    way : configs.Way
    most_lives : int
        Channels for the lives of each client.
    rows_per_s : float
        That each client reads.
    disks : mapping of str to Path, optional
        Folders of nodes that do not keep what they keep with the others.
    scores : bool
        Clients write scores to standard output.

    Attributes
    ----------
    running : dict of str to Program
        By node; the newest of each, dead or alive.
    all : list of (node, Program)
        That ever ran.
    lives : list of Life
    stores : dict of str to Path
        Of the aggregators that were started.
    """

    def __init__(
        self,
        programs: Programs,
        way: configs.Way,
        *,
        most_lives: int = 1,
        rows_per_s: float = 200.0,
        disks: Mapping[str, Path] | None = None,
        scores: bool = False,
    ) -> None:
        self.most_lives = most_lives
        self.stores: dict[str, Path] = {}
        self.running: dict[str, Program] = {}
        self.all: list[tuple[str, Program]] = []
        self.incarnations: list[ClientIncarnation] = []
        self._programs, self._rows_per_s = programs, rows_per_s
        self._ids = itertools.count(1)
        self._feeders: dict[str, Feeder] = {}
        self._lock = threading.Lock()
        self._way, self._disks, self._scores = way, disks or {}, scores

    def start(self, node: str, point: str = ANYWHERE, calls: int = 1) -> Program:
        """Start a node's next process, with a failpoint that is not armed."""
        kind = "aggregator" if node in AGGREGATORS else "client"
        args = kind, "--config", self._programs.file(f"{node}.toml", self._config(node))
        with self._lock:
            if point == ANYWHERE:
                program = self._programs.start(*args)
            else:
                command = (*RUNNER, point, str(calls), "--")
                program = self._programs.start(*args, command=command)
            self.running[node] = program
            self.all.append((node, program))
            if kind == "client":
                self._feed(node, program)
        return program

    def strike(self, node: str, point: str) -> str:
        """Kill a node's process at its failpoint; return where it died."""
        program, came_there = self.running[node], False
        assert program.incarnations, f"{node} died by itself; its log:\n{program.log}"
        if point != ANYWHERE:
            program.signal(signal.SIGUSR1)
            ends = time.monotonic() + COMES_THERE_S
            while program.incarnations and time.monotonic() < ends:
                time.sleep(0.005)
            came_there = not program.incarnations
        program.kill()
        if node in CLIENTS:
            self.look_at_card(node)
        return point if came_there else ANYWHERE

    def recovered(self, node: str) -> float:
        """Wait until a process that was started again does what it is there for.

        Returns
        -------
        float
            Seconds from its start until its next report was acknowledged; of an aggregator,
            until those children had one acknowledged that ran all the time.
        """
        program, at = self.running[node], list[float]()

        def is_back() -> bool:
            at[:] = self._back_at(node)
            return bool(at)

        until(is_back, lambda: f"{node} to recover; its log:\n{program.log}", self._lines)
        return max(at) - program.began

    def settle(self) -> None:
        """Feed no more, and wait until the root holds everything."""
        for feeder in self._feeders.values():
            feeder.stop()
        for node in self._feeders:
            self._settle(node)

    def end(self) -> list[str]:
        """End all, clients first; return what was wrong with that."""
        wrong = []
        for node in filter(self.running.get, (*CLIENTS, *reversed(AGGREGATORS))):
            status = self.running[node].end()
            if status:
                wrong.append(f"{node} ended with status {status}:\n{self.running[node].log}")
        return wrong

    def disk_of(self, node: str) -> Path:
        """Return where a node keeps what it keeps: an aggregator's store, a client's state."""
        name = f"{node}.db" if node in AGGREGATORS else f"{node}.state"
        return self._disks.get(node, self._programs.folder) / name

    def look_at_card(self, node: str) -> None:
        """Note what the checkpoint of a client that is dead holds, of whichever life."""
        with closing(CheckpointFile(self.disk_of(node))) as file:
            kept = file.load().get(CHECKPOINT)
        if kept is None:
            return
        checkpoint = records.unpack(CHECKPOINT, kept)
        if checkpoint.pin is None:
            return  # before its first join: it is never sent
        counts = checkpoint.report.counts
        held = Held.seen(counts.learnt, checkpoint.report.summary, MARKS + self.most_lives)
        for current in self.incarnations:
            if current.fed.client == node:
                current.kept = max(current.kept, round(float(held.by_life[current.fed.number])))

    def _config(self, node: str) -> str:
        named = channels(self.most_lives)
        if node in CLIENTS:
            place, parent = self.disk_of(node), PARENTS[node]
            return configs.client(node, parent, self._way, named, place, scores=self._scores)
        self.stores[node] = self.disk_of(node)
        return configs.aggregator(node, PARENTS.get(node), self._way, named, self.disk_of(node))

    def _back_at(self, node: str) -> list[float]:
        """When a node was of use again, by time.monotonic: of several times the last."""
        program = self.running[node]
        if node in CLIENTS:
            return next_after(program.began, program)
        serves = [line.at for line in program.said("serving")]
        if not serves:
            return []
        own = [name for name, parent in PARENTS.items() if parent == node]
        children = [self.running[name] for name in own if name in self.running]
        children = [each for each in children if each.incarnations and each.began < program.began]
        reported = [next_after(serves[0], each) for each in children]
        return serves + [at for times in reported for at in times] if all(reported) else []

    def _settle(self, node: str) -> None:
        current = [current for current in self.incarnations if current.fed.client == node][-1]
        program, readings = current.fed.program, len(current.fed.ids)
        until(
            lambda: is_durable(program, readings),
            lambda: f"the root to hold all {readings} of {node}; its log:\n{program.log}",
            self._lines,
        )

    def _lines(self) -> int:
        """Return how many lines all logs have: they grow while anything goes on."""
        return sum(len(program.lines) for _, program in list(self.all))

    def _feed(self, node: str, program: Program) -> None:
        number = sum(current.fed.client == node for current in self.incarnations)
        fed = Fed(node, number, program)
        self.incarnations.append(ClientIncarnation(fed))
        self._feeders[node] = Feeder(
            fed, self._ids, incarnations=self.most_lives, rows_per_s=self._rows_per_s
        )


def next_after(at: float, program: Program) -> list[float]:
    """Return when a program next had a report acknowledged, if it had."""
    return [line.at for line in program.said("acknowledged") if line.at > at][:1]


def is_durable(program: Program, readings: int) -> bool:
    """Whether a client has heard that the root holds so many readings of its life."""
    said = program.said("acknowledged")
    whole = [line for line in said if line.facts["readings"] - line.facts["lost"] >= readings]
    return bool(whole) and said[-1].facts["durable"] >= whole[0].facts["seq"]
