"""Transcripts: what a few nodes say to one another, command by command, told in text.

`tests/scenarios/*.txt` are documentation that is tested. A line that begins at the margin
is a command (`VERBS` below); the indented lines after it are all that is said because of it,
in the order in which it arrives; `#` explains. A name like `c.2` is the second life of `c`
that anybody has heard of, `#3` the third thing that a life has said.

`SUBMERGE_REWRITE=1 pytest tests/core/test_scenarios.py` writes down what is said now.
"""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from submerge.protocol.machine import Flush, Forget, SetQuarantine
from submerge.protocol.messages import (
    Answer,
    Counts,
    Hello,
    Incarnation,
    Join,
    Joined,
    Message,
    Model,
    Reason,
    Report,
)
from support.nodes import GROUP, Inbound, Table

SCENARIOS = sorted((Path(__file__).parents[2] / "scenarios").glob("*.txt"))
assert SCENARIOS
LONG = {"offline_month"}


class Stage:
    """Plays commands, and writes down what is said."""

    def __init__(self) -> None:
        self.table = Table()
        self.table.heard = self._heard
        self._incarnations: dict[str, list[Incarnation]] = {}
        self._lines: list[str] = []

    def play(self, command: str) -> list[str]:
        """Return what a command leads to, line by line."""
        for pattern, verb in VERBS.items():
            found = re.fullmatch(pattern, command)
            if found:
                self._lines = []
                verb(self, *found.groups())
                self.table.run()
                return _once(self._lines)
        raise ValueError(f"expected one of {', '.join(VERBS)}, got {command!r}")

    def counts(self, label: str) -> None:
        """Say what an aggregator's rows come to."""
        ledger = self.table.hosts[label].ledger
        rows = ", ".join(self._life(node, current) for node, current in sorted(ledger.rows))
        reported = f"{label} counts {_reported(ledger.counts())}; live rows: {rows or 'none'}"
        for node, why in self.table.hosts[label].node.excluded(GROUP)[1].items():
            reported += f"; without {node}: {why.cause}"
        for node in ledger.presence.turns.nodes_at_once(self.table.time):
            reported += f"; two machines report as {node}"
        self._lines.append(reported)

    def knows(self, label: str) -> None:
        """Say what a client knows of its running life."""
        host = self.table.hosts[label]
        current = host.node.current
        name = self._life(host.name, current.incarnation)
        self._lines.append(
            f"{name}: {_reported(current.counts)}; #{current.durable} is at the root"
        )

    def _heard(self, letter: Inbound, arrives: bool) -> None:
        way = f"{letter.source} -> {letter.to}: {self._said(letter.message)}"
        self._lines.append(way if arrives else f"{way}  (lost)")

    def _said(self, message: Message) -> str:
        match message:
            case Join(stamp=stamp):
                return f"Join {self._life(stamp.node, stamp.incarnation)}"
            case Joined(stamp=stamp, reason=Reason.ACK):
                held = f", which holds #{stamp.seq}" if stamp.seq else ""
                return f"Joined {self._parent(message.pinned)}{held}"
            case Joined():
                return f"Joined: {message.reason.name}"
            case Report(stamp=stamp):
                what = "Final report" if message.final else "Report"
                reported = (
                    f"#{stamp.seq}, {_reported(message.counts)}, for {self._parent(message.pinned)}"
                )
                return f"{what} {self._life(stamp.node, stamp.incarnation)} {reported}"
            case Answer(stamp=stamp):
                taken = message.reason is Reason.ACK
                said = f"#{message.newest}" if taken else message.reason.name
                durable = f", the root has #{message.durable}" if message.durable else ""
                return f"Answer {self._life(stamp.node, stamp.incarnation)} {said}{durable}"
            case Hello():
                return f"Hello {self._life(message.node, message.incarnation)}"
            case Model():
                return f"Model of {_reported(message.counts)}"

    def _life(self, node: str, incarnation: Incarnation) -> str:
        incarnations = self._incarnations.setdefault(node, [])
        if incarnation not in incarnations:
            incarnations.append(incarnation)
        return f"{node}.{incarnations.index(incarnation) + 1}"

    def _parent(self, incarnation: Incarnation | None) -> str:
        for host in self.table.hosts.values():
            if getattr(host.node, "incarnation", None) == incarnation is not None:
                return self._life(host.name, incarnation)
        named = [n for n, incarnations in self._incarnations.items() if incarnation in incarnations]
        return self._life(named[0], incarnation) if named and incarnation else "nobody"


VERBS: dict[str, Callable[..., Any]] = {
    r"root (\S+)": lambda s, name: s.table.root(name),
    r"aggregator (\S+) under (\S+)": lambda s, name, up: s.table.aggregator(name, under=up),
    r"client (\S+) under (\S+)": lambda s, name, up: s.table.client(name, under=up),
    r"(\S+) reads (\d+)": lambda s, name, n: s.table.reads(name, int(n)),
    r"time (\d+) s": lambda s, n: s.table.passes(float(n)),
    r"time (\d+) days": lambda s, n: s.table.passes(86400.0 * int(n)),
    r"(\S+) dies": lambda s, name: s.table.dies(name),
    r"(\S+) starts": lambda s, name: s.table.starts(name),
    r"(\S+) loses its disk": lambda s, name: s.table.hosts[name].disk.clear(),
    r"(\S+) is copied as (\S+)": lambda s, name, twin: s.table.copy(name, twin),
    r"(\S+) is copied with its memory as (\S+)": lambda s, name, twin: s.table.double(name, twin),
    r"(\S+) is cut off": lambda s, name: setattr(s.table.hosts[name], "cut", True),
    r"(\S+) is back": lambda s, name: s.table.back(name),
    r"(\S+) flushes": lambda s, name: s.table.step(name, Flush()),
    r"(\S+) forgets (\S+)": lambda s, name, node: s.table.step(name, Forget(GROUP, node)),
    r"(\S+) releases (\S+)": lambda s, name, node: s.table.step(
        name, SetQuarantine(GROUP, node, quarantined=False)
    ),
    r"(\S+) counts": Stage.counts,
    r"(\S+) knows": Stage.knows,
}


def _reported(counts: Counts) -> str:
    lost = f" and {counts.lost} lost" if counts.lost else ""
    return f"{counts.learnt} readings{lost}"


def _once(lines: list[str]) -> list[str]:
    """Say once what is said again and again."""
    often = {line for line, times in Counter(lines).items() if times > 2}
    once = dict.fromkeys(line if line in often else (line, i) for i, line in enumerate(lines))
    return [f"{x}  (again and again)" if isinstance(x, str) else x[0] for x in once]


def played(script: str) -> str:
    """Return a transcript with what is said now."""
    stage, out = Stage(), []
    for line in script.splitlines():
        if line.startswith("    "):
            continue
        out.append(line)
        if line and not line.startswith("#"):
            out += [f"    {said}" for said in stage.play(line)]
    assert not stage.table.summaries.doubled
    return "\n".join(out) + "\n"


@pytest.mark.parametrize(
    "path",
    [
        pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else [])
        for path in SCENARIOS
    ],
)
def test_it_is_said_as_written(path):
    """The transcript is what the nodes say, and no reading is counted twice."""
    script = path.read_text()
    said = played(script)
    if os.environ.get("SUBMERGE_REWRITE"):
        path.write_text(said)

    assert path.read_text() == said
