"""Checks of a root's histories: its store is the only place that holds them."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Iterable, Iterator
from pathlib import Path

from submerge import UsageError
from submerge_aggregator.questions.views import socket_of
from submerge_files.console.admin_client import AdminClient
from submerge_files.console.ways import NoAnswer, UnixSocket
from submerge_operate.doctor.findings import Finding, ok

OF_HISTORIES = "SELECT count(*) FROM records WHERE key LIKE '[\"history\",%'"


def histories(store: Path, groups: Iterable[str], *, running: bool) -> Iterator[Finding]:
    """Return how many histories are in the store of a root; nothing if there are none."""
    try:
        held = _asked(store, groups) if running else _counted(store)
    except (NoAnswer, UsageError, sqlite3.Error):
        return  # an earlier version; or a store that another check reports
    if held:
        several = "histories live" if held > 1 else "history lives"
        yield ok("histories", f"{held} {several} in {store.name} alone: keep the model files")


def _asked(store: Path, groups: Iterable[str]) -> int:
    admin = AdminClient(UnixSocket(socket_of(store)))
    return sum(len(json.loads(admin.get("histories", group))) for group in groups)


def _counted(store: Path) -> int:
    if not store.is_file() or store.is_symlink():
        return 0
    sql = sqlite3.connect(f"file:{store.absolute()}?mode=ro", uri=True, timeout=0)
    try:
        (held,) = sql.execute(OF_HISTORIES).fetchone()
    finally:
        sql.close()
    return int(held)
