"""How an aggregator itself is: its links, its store, and what it has refused."""

from __future__ import annotations

from dataclasses import asdict
from operator import itemgetter
from typing import Any

from submerge_aggregator.operators.identify import DENIALS
from submerge_aggregator.refusals import REASONS
from submerge_aggregator.server import Server
from submerge_proto.wire.parts import SOFTWARE


def health(server: Server) -> dict[str, Any]:
    """Return how an aggregator is, for JSON: counts of this process, times in Unix seconds or 0."""
    worker = server.worker
    settings = None if worker.node is None else worker.node.settings
    used, most = server.unanswered
    counted = (
        ("message", REASONS, server.refusals.counts),
        ("request", DENIALS, server.order_log.denials.counts),
    )
    refused: list[dict[str, Any]] = [
        {"what": what, "reason": reason, "meaning": meanings[reason], "count": count}
        for what, meanings, counts in counted
        for reason, count in counts.items()
        if count
    ]
    tallies = asdict(worker.tallies)
    return {
        "node": "" if settings is None else settings.node,
        "software": SOFTWARE,
        "not_ready": not_ready(server) or "",
        "parent": "" if settings is None else settings.parent or "",
        "parted": server.parted,
        "broker": server.broker,
        **{name: tallies[name] for name in ("joins", "reports", "commits", "failed_writes")},
        "models_rejected": tallies["model_rejected"],
        "unanswered_bytes": used,
        "most_unanswered_bytes": most,
        "audit_dropped": server.audit.dropped,
        "certified_until_s": worker.certified_until,
        "backup_s": server.last_backup.made_s,
        "refused": sorted(refused, key=itemgetter("count"), reverse=True),
    }


def not_ready(server: Server) -> str | None:
    """Return why children would get no answer; None if they do."""
    node = server.worker.node
    if not server.ready:
        return "it is starting or stopping"
    if node is None:
        return "the store cannot be written"
    if not node.settled:
        return f"the store belongs to no parent yet: {node.settings.parent} has not answered"
    return None
