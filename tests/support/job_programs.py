"""JobPrograms: a root, two aggregators and eight clients as real programs, for tests of jobs."""

from __future__ import annotations

import json
import sys
from collections.abc import Collection
from typing import Any

import numpy as np

from submerge.jobs.local_run import run_here
from support.kills.configs import GROUP, Way, aggregator, client
from support.patience import until
from support.programs import Program, Programs

SITES = {"hall": ("a", "b", "c", "d"), "yard": ("e", "f", "g", "h")}
CHANNELS = ("x", "y", "z")
ROOT = "root"
TREE = {ROOT: None, **dict.fromkeys(SITES, ROOT)} | {
    name: site for site, names in SITES.items() for name in names
}
ROWS = 64
"""Fewer than a client holds for jobs: so it holds all of them, in their order."""


def rows_of(name: str) -> np.ndarray:
    """Rows of a client: numbers of few digits, which JSON keeps as they are."""
    rng = np.random.default_rng([ord(name), 22])
    centers = np.array([[0.0, 0, 0], [8, 0, 4], [0, 8, -4]])
    return np.round(centers[rng.integers(3, size=ROWS)] + rng.standard_normal((ROWS, 3)), 3)


class JobPrograms:
    """The programs; more may be started and killed.

    scoring : clients that write scores to their standard output
    features : of the group's schema, as TOML
    settings : what the nodes' configurations say besides, at their top, by name
    """

    def __init__(
        self,
        way: Way,
        programs: Programs,
        *,
        scoring: Collection[str] = (),
        features: str = "",
        **settings: str,
    ) -> None:
        self._way, self._programs, self._settings = way, programs, settings
        self._features = features
        self._scoring = scoring
        self.running: dict[str, Program] = {}
        for node in TREE:
            self.start(node)

    def start(self, node: str) -> Program:
        """Start a program, and give a client its rows."""
        path, parent = self._programs.folder / f"{node}.state", TREE[node]
        if parent is None or node in SITES:
            text = aggregator(node, parent, self._way, CHANNELS, path)
            text = self._settings.get(node, "") + text
            text = text.replace('center = "fleet"', 'center = "fleet"\nscaling = "none"')
            if parent is None and self._features:
                text += f"[groups.{GROUP}.schema.features]\n{self._features}"
                text = text.replace("[advanced]", "[advanced]\nscaling_rows = 200")
        else:
            scores = node in self._scoring
            text = client(node, parent, self._way, CHANNELS, path, scores=scores)
            text = self._settings.get(node, "") + text
            text = text.replace('center = "fleet"', 'center = "fleet"\nscaling = "none"')
            text += f"[schema.features]\n{self._features}" if self._features else ""
        config = self._programs.file(f"{node}.toml", text)
        if node == ROOT:
            command = [sys.executable, "-m", "support.job_root"]
            program = self._programs.start("--config", config, command=command)
        else:
            kind = "aggregator" if node in SITES else "client"
            program = self._programs.start(kind, "--config", config)
        self.running[node] = program
        program.until("serving" if node == ROOT or node in SITES else "reading")
        if node not in SITES and node != ROOT:
            self.feed(node)
        return program

    def feed(self, *clients: str) -> None:
        """Give clients their rows, once more."""
        for name in clients:
            for row in rows_of(name):
                self.running[name].write(json.dumps(list(row)).encode() + b"\n")

    def counts(self, readings: int) -> None:
        """Wait until the root counts so many readings: no more, and no less."""
        asked = 0

        def is_so() -> bool:
            nonlocal asked
            asked += 1
            self.order(readings=asked)
            return self.event("counted", number=asked)["readings"] == readings

        until(is_so, lambda: f"{readings} readings; {self.heard[-1:]}")

    @property
    def heard(self) -> list[dict[str, Any]]:
        """What the root's board has heard."""
        return [json.loads(line) for line in list(self.running[ROOT].out)]

    def order(self, **facts: Any) -> None:
        """Have the root open a job, or cancel one."""
        self.running[ROOT].write(json.dumps(facts).encode() + b"\n")

    def has_all(self) -> None:
        """Wait until every aggregator holds all rows of its clients, and reports them."""
        for name in (each for names in SITES.values() for each in names):
            program = self.running[name]
            until(
                lambda program=program: any(
                    line.what == "acknowledged" and line.facts["readings"] >= ROWS
                    for line in list(program.lines)
                ),
                lambda name=name: f"{name} to have reported its rows",
            )
        for name in SITES:
            self.running[name].until("acknowledged")

    def event(self, kind: str, **facts: Any) -> dict[str, Any]:
        """Wait for what the board hears, and return it."""

        def found() -> list[dict[str, Any]]:
            return [e for e in self.heard if e["event"] == kind and facts.items() <= e.items()]

        until(found, lambda: f"{kind} {facts} among {self.heard}")
        return found()[0]


def answer_here(kind: str, settings: dict[str, Any], stayed: Any) -> dict[str, str]:
    """Return the answer over the rows of those who stayed, in one process, as bytes."""

    def parts(below: Any) -> Any:
        return {
            name: parts(each) if isinstance(each, dict) else rows_of(name)
            for name, each in below.items()
        }

    answer = run_here(kind, settings, parts(stayed))
    return {name: array.tobytes().hex() for name, array in answer.items()}
