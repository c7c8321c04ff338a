"""bounded(): a replay, and the same rows at the least and at the largest rank that its rule chose.

The paper calls them SPCA lo and SPCA hi: an adaptive rank is worth what lies between them.
"""

from __future__ import annotations

from dataclasses import replace

from submerge_client.datasets import Table
from submerge_lab.replay.run import ErrorCurves, RankBound, ReplayOutcome, replay
from submerge_lab.replay.settings import ReplaySettings


def bounded(
    table: Table, settings: ReplaySettings, *, watch: bool
) -> tuple[ReplayOutcome, ErrorCurves]:
    """Replay as `run.replay` does; with `settings.bounds`, replay at two fixed ranks as well."""
    outcome, curves = replay(table, settings, watch=watch or settings.bounds)
    if not settings.bounds:
        return outcome, curves
    start = settings.rule(table.rows.shape[1]).start
    ranks = [start, *(moment.rank for leaf in curves.leaves for moment in leaf.moments)]
    # Rows that are all alike have no direction to show.
    least = max(1, min(ranks))
    at = {rank: _at(rank, table, settings) for rank in {least, max(ranks)}}
    return replace(outcome, bounds={"lo": at[least], "hi": at[max(ranks)]}), curves


def _at(rank: int, table: Table, settings: ReplaySettings) -> RankBound:
    fixed = replace(settings, rank=rank, rank_rule="fixed", hold_off=0, bounds=False)
    found, _ = replay(table, fixed, watch=False)
    return RankBound(rank, found.error, found.optimum, found.ratio, found.over_time)
