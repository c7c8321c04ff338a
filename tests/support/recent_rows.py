"""What a node replies about itself when it is asked, made from rows: as `submerge client` does."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec
import numpy as np

from submerge import Array, Channel
from submerge_client.asked.shapes import (
    LETTERS,
    Blamed,
    KindScores,
    RecentReply,
    ShownChannel,
    ValuesReply,
)
from submerge_client.asked.shown_settings import SettingsReply

EVERY_S = 10.0
"""Between two rows."""


def replies(
    topic: str, node: str, group: str, channels: Sequence[Channel], rows: Array, now: float
) -> bytes:
    """Return a reply on one of settings, recent and values.

    rows : (n, channels), the newest last
    """
    at = [now - EVERY_S * i for i in reversed(range(len(rows)))]
    known = {"node": node, "group": group}
    if topic == "settings":
        said = {"node": node, "group": group, "timing": {"report_every_s": 300.0}}
        return msgspec.json.encode(
            SettingsReply(node=node, kind="client", software="submerge 1", settings=said)
        )
    smooth = (rows + np.roll(rows, 1, axis=0)) / 2
    off = np.abs(rows - smooth) / rows.std(axis=0)
    if topic == "values":
        shown = [ShownChannel(name=cut(each.name), unit=cut(each.unit)) for each in channels]
        reply = ValuesReply(
            at=at,
            channels=shown,
            values=rows.T.tolist(),
            expected=smooth.T.tolist(),
            sd=(rows.std(axis=0) / 3).tolist(),
            **known,
        )
        return msgspec.json.encode(reply)
    worst = off.max(axis=1).tolist()
    blame = [[Blamed(int(row.argmax()), 0.8)] for row in off]
    return msgspec.json.encode(
        RecentReply(
            version=1,
            provisional=False,
            at=at,
            kinds=[
                KindScores(kind="spe", limit=3.0, values=worst),
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
