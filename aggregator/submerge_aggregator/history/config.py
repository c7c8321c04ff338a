"""HistoryConfig: how many bytes an aggregator's history may take."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from submerge_client.config.sections import Section, refusal

LEAST_BYTES = 1 << 20
"""A smaller history would not hold a day of a few nodes beside its alarms."""

Bytes = Annotated[int, Meta(ge=0, le=1 << 40, description="a number of bytes, 0 for none")]


class HistoryConfig(Section, frozen=True, kw_only=True):
    """Scores minute by minute, past alarms, and versions of models, for people.

    max_bytes : Most bytes on disk, at least 1 MiB; the oldest goes first. 0: no history is kept.
        Raising it keeps more days: a node takes some 170 bytes an hour.
    """

    max_bytes: Bytes = 16 << 20

    def __post_init__(self) -> None:
        if 0 < self.max_bytes < LEAST_BYTES:
            raise refusal(
                "max_bytes",
                expected=f"0 for no history, or {LEAST_BYTES} at least",
                got=str(self.max_bytes),
            )


def history_path(store: str | os.PathLike[str]) -> Path:
    """Return the file of an aggregator's history: it stands beside the store."""
    return Path(f"{os.path.realpath(store)}.history")
