"""The state of a running client in one line, for people and for systemd."""

from __future__ import annotations

from submerge.client.node import ClientNode


def status_line(node: ClientNode, rows: int, delivered: int, away: str | None, problem: str) -> str:
    """Return the line.

    rows : that the sensor handed over
    delivered : readings of the running incarnation that the parent is known to hold
    away : why the parent is out of reach, if it is
    problem : of where scores go, or nothing
    """
    said = "" if away is None else f"; parent out of reach: {away}"
    # `delivered` includes declared losses, which are no rows.
    held = max(0, delivered - node.current.counts.lost)
    if not node.finals.waiting:
        held += earlier(node, rows)
    waits = unsettled(node)
    measured = f", {waits} wait for the fleet to settle its schema" if waits else ""
    said += f"; {problem}" if problem else ""
    return f"{rows} rows, {held} with the parent{measured}{said}"


def unsettled(node: ClientNode) -> int:
    """Return the readings of which a parent has moments only, until the schema is settled."""
    current = node.current
    return node.finals.measured + (0 if current.learns else current.counts.learnt)


def earlier(node: ClientNode, rows: int) -> int:
    """Return the rows of this process that were in incarnations before the running one."""
    counts = node.current.counts
    return max(0, rows - counts.learnt - counts.withheld)
