"""tolerate(): settings of earlier versions. Each costs one log line, and no start fails.

Most are ignored: they are constants of `protocol.settings` now. Settings of a group's schema, and
of the place where scores go, are still used: ignoring them would change the schema. From version
`REFUSED_FROM` on they are unknown settings, and this module goes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

REFUSED_FROM = "0.8"
"""The version in which the tolerance ends."""

INTERNAL = "advanced"
"""The section for tests, demo and benchmarks: in no sample, and no hint names it."""

FOREIGN = "sink"
"""Tables of kinds that other packages add: in no sample, which has none of them."""


class Removal(NamedTuple):
    """How a removed setting is treated.

    hint : what to do about it
    used : whether this version still uses it
    """

    hint: str
    used: bool = False


CONSTANT = Removal("take it out: it is a constant now")
LEAVES = Removal("take it out: it is a constant in later versions", used=True)
MOVED = Removal("write it into [scores.broker]", used=True)

LINK = ("url", "insecure", "ca", "cert", "key", "username", "password_file", "fleet")
"""The settings of a broker that [scores] had itself."""

CLIENT: dict[str, Removal] = {
    "timing.min_new_rows": CONSTANT,
    "timing.turned_by": CONSTANT,
    "timing.min_turned_rows": CONSTANT,
    "timing.patience_s": CONSTANT,
    "timing.cap_s": CONSTANT,
    "timing.finals": CONSTANT,
    "alarms.after": CONSTANT,
    "alarms.of": CONSTANT,
    "schema.features.seed": LEAVES,
    "schema.features.buckets": LEAVES,
    "summary.linear_rank": LEAVES,
    **dict.fromkeys([f"scores.{name}" for name in LINK], MOVED),
}

AGGREGATOR: dict[str, Removal] = {
    "timing.patience_s": CONSTANT,
    "timing.cap_s": CONSTANT,
    "timing.seal_after_s": CONSTANT,
    "timing.max_age_s": CONSTANT,
    "timing.scaling_rows": CONSTANT,
    "listen.burst": CONSTANT,
    "groups.*.schema.features.seed": LEAVES,
    "groups.*.schema.features.buckets": LEAVES,
    "groups.*.summary.linear_rank": LEAVES,
}


def tolerate(
    table: dict[str, Any], removed: Mapping[str, Removal]
) -> list[tuple[tuple[str, ...], Removal]]:
    """Take removed settings out of a table, or move them; return which."""
    found = []
    for pattern, removal in removed.items():
        for keys, place in _places(table, pattern.split(".")):
            found.append((keys, removal))
            if not removal.used:
                del place[keys[-1]]
    if any(removal is MOVED for _, removal in found):
        _move_broker(table["scores"], table.get("uplink"))
    return found


def _places(
    table: Any, steps: list[str], above: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], dict[str, Any]]]:
    """Yield the keys that match a pattern, each with its section."""
    if not isinstance(table, dict):
        return
    step, *more = steps
    for key in list(table) if step == "*" else [step] * (step in table):
        if more:
            yield from _places(table[key], more, (*above, key))
        else:
            yield (*above, key), table


def _move_broker(scores: dict[str, Any], uplink: Any) -> None:
    """Move the broker of scores into a section; without a url it was the uplink's."""
    broker = {name: scores.pop(name) for name in LINK if name in scores}
    if scores.get("to") != "mqtt" or "broker" in scores:
        return  # they had no effect
    if "url" not in broker and isinstance(uplink, dict):
        broker = {name: uplink[name] for name in LINK if name in uplink} | broker
    scores["broker"] = broker


def is_listed(name: str) -> bool:
    """Return whether hints may name a setting or a section of this name."""
    leaving = {key.rpartition(".")[2] for key, removal in CLIENT.items() if removal is LEAVES}
    return name not in (INTERNAL, FOREIGN) and name not in leaving
