"""AuditConfig: where the audit log is."""

from __future__ import annotations

import os
from pathlib import Path

from submerge_client.config.sections import AnyText, Section


class AuditConfig(Section, frozen=True, kw_only=True):
    """Who joined, who was refused, and what operators ordered.

    path : A file, which is rotated; left out, STORE.audit.jsonl beside the store; "" for none.
    """

    path: AnyText | None = None


def audit_path(config: AuditConfig, store: str | os.PathLike[str]) -> Path | None:
    """Return the file of an aggregator's audit log; None if it has none."""
    if config.path is None:
        return Path(f"{os.path.realpath(store)}.audit.jsonl")
    return Path(config.path) if config.path else None
