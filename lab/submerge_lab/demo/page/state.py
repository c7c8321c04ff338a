"""What the demo's view shows, as one JSON text."""

from __future__ import annotations

import time
from collections.abc import Iterator

import msgspec

from submerge_lab.demo.nodes import Node
from submerge_lab.demo.page.books import Line
from submerge_lab.demo.page.fleet import LastingFleet, Verb


class ShownProcess(msgspec.Struct, frozen=True):
    """One process of the demo.

    pid : None while it does not run.
    since_s : When its state began, Unix seconds.
    verbs : What can be done with it now.
    why : What it wrote last, if it has ended by itself.
    """

    name: str
    role: str
    parent: str
    state: str
    pid: int | None
    since_s: float
    verbs: tuple[Verb, ...]
    why: str = ""


class ShownLine(msgspec.Struct, frozen=True):
    """The line fed = counted + under way + declared lost, and its parts; see `books`."""

    fed: int
    counted: int
    under_way: int
    lost: int
    holds: bool
    off: int
    wrong: tuple[str, ...]
    in_clients: int
    in_aggregators: int
    open: int
    lost_at_root: int
    gone: int
    compared: int


class DemoState(msgspec.Struct, frozen=True):
    """All that the view shows.

    at : When, Unix seconds.
    day : Of the room.
    line : None until the root has answered.
    """

    at: float
    day: float
    processes: tuple[ShownProcess, ...]
    line: ShownLine | None


def state_of(fleet: LastingFleet, line: Line | None, *, day: float) -> DemoState:
    """Return the state of now: each process, and then those that report to it."""
    processes = tuple(_process(fleet, node) for node in _below(fleet, None))
    shown = None if line is None else msgspec.convert(line, ShownLine, from_attributes=True)
    return DemoState(time.time(), day, processes, shown)


def _below(fleet: LastingFleet, parent: str | None) -> Iterator[Node]:
    for node in fleet.nodes.values():
        if node.member.parent == parent:
            yield node
            yield from _below(fleet, node.name)


def _process(fleet: LastingFleet, node: Node) -> ShownProcess:
    return ShownProcess(
        node.name,
        node.member.role,
        node.member.parent or "",
        node.state,
        None if node.process is None else node.process.pid,
        fleet.since.get(node.name, 0.0),
        fleet.verbs(node),
        node.last_log if node.state == "failed" else "",
    )
