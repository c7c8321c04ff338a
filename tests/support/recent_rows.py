"""What a node replies about itself when it is asked, made from rows: as `submerge client` does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from submerge import Array, Channel
from submerge_client.replies import (
    LETTERS,
    Blamed,
    KindScores,
    RecentReply,
    SettingsReply,
    ShownChannel,
    ValuesReply,
)

EVERY_S = 10.0
"""Between two rows."""


def replies(
    topic: str,
    node: str,
    group: str,
    channels: Sequence[Channel],
    rows: Array,
    normal: Array,
    now: float,
) -> bytes:
    """Return a reply on one of settings, recent and values.

    rows, normal : (n, channels), the newest last; what is read, and what would be without a fault
    """
    at = [now - EVERY_S * i for i in reversed(range(len(rows)))]
    known = {"node": node, "group": group}
    if topic == "settings":
        said = {"node": node, "group": group, "timing": {"report_every_s": 300.0}}
        return msgspec.json.encode(
            SettingsReply(node=node, kind="client", software="submerge 1", settings=said)
        )
    spread = normal.std(axis=0)
    smooth = (normal + 2 * normal.mean(axis=0)) / 3
    off = 2 * np.abs(rows - smooth) / spread
    if topic == "values":
        shown = [ShownChannel(name=cut(each.name), unit=cut(each.unit)) for each in channels]
        reply = ValuesReply(
            at=at,
            channels=shown,
            values=rows.T.tolist(),
            expected=smooth.T.tolist(),
            sd=(spread / 2).tolist(),
            **known,
        )
        return msgspec.json.encode(reply)
    worst = off.max(axis=1).tolist()
    named = [np.argsort(-row)[:3].tolist() for row in off]
    blame = [
        [Blamed(i, round(float(row[i] / row.sum()), 3)) for i in three]
        for three, row in zip(named, off, strict=True)
    ]
    return msgspec.json.encode(
        RecentReply(
            version=1,
            provisional=False,
            at=at,
            kinds=[
                KindScores(kind="spe", limit=5.0, values=worst),
                KindScores(kind="t2", limit=4.0, values=[each**0.5 for each in worst]),
            ],
            channels=[cut(each.name) for each in channels],
            blame=blame,
            **known,
        )
    )


def cut(text: str) -> str:
    """Return a name as a reply may have it; the border lets no other through."""
    return "".join(each if each.isprintable() else "?" for each in text[:LETTERS])
