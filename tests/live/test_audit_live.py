"""The audit log of real processes, and `submerge aggregator audit`."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("grpc")

from submerge_aggregator.http.serving import uid_of
from support.kills.configs import OverGrpc
from support.kills.fleet import Fleet
from support.patience import until
from support.programs import Programs

pytestmark = pytest.mark.slow


def submerge(*arguments: object) -> str:
    """What a command prints."""
    command = [sys.executable, "-m", "submerge_operate", *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def audit_of(store: Path, *more: object) -> list[dict]:
    lines = submerge("aggregator", "audit", "--store", store, "--json", *more).splitlines()
    return [json.loads(line) for line in lines]


def test_a_fleets_joins_and_orders_are_in_the_audit_log():
    """By a real fleet over gRPC: who joined from where, and which user ordered what."""
    with Programs() as programs:
        fleet = Fleet(programs, OverGrpc.on_free_ports())
        for node in ("root", "north", "n1"):
            fleet.start(node)
        for node in ("root", "north", "n1"):
            fleet.recovered(node)
        north, root = fleet.stores["north"], fleet.stores["root"]
        (group,) = {each["group"] for each in audit_of(north) if each["event"] == "join"}
        submerge("nodes", "quarantine", "n1", "--store", north)
        submerge("nodes", "release", "n1", "--store", north)
        submerge("nodes", "forget", "n1", "--ban", "--yes", "--store", north)
        until(lambda: 2 == len(audit_of(north, "--event", "order")), lambda: "two orders")
        until(lambda: audit_of(north, "--event", "refused"), lambda: "a refusal of the banned node")
        fleet.running["north"].end()

        entries = audit_of(north)
        assert ["start", "stop"] == [entries[n]["event"] for n in (1, -1)]
        (joined,) = audit_of(north, "--event", "join", "--group", group)
        assert ("n1", "client") == (joined["node"], joined["kind"])
        assert joined["address"].startswith("ipv")
        (above,) = audit_of(root, "--event", "join")
        assert ("north", "aggregator") == (above["node"], above["kind"])
        orders = audit_of(north, "--node", "n1", "--event", "order")
        assert ["quarantine", "release"] == [each["verb"] for each in orders]
        (ban,) = audit_of(north, "--event", "ban")
        who = f"uid {os.getuid()}" if sys.platform == "linux" else "unknown"
        assert {who} == {each["by"] for each in (*orders, ban)}
        assert 0o600 == Path(f"{north}.audit.jsonl").stat().st_mode & 0o777


def test_the_user_at_a_socket_is_known_on_linux():
    """Of a Unix socket; another has none."""
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    with ours, theirs, socket.socket() as other:
        assert (os.getuid() if sys.platform == "linux" else None) == uid_of(ours)
        assert uid_of(other) is None
        assert uid_of(None) is None
