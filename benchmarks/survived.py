"""Faults survived: simulated fleets with failures of every kind, and the rules that they broke.

Eight real `ClientNode`s below three levels of real aggregators, four virtual hours with faults,
then a time to settle; each message goes through its bytes. Each seed draws its own rates. An
oracle follows every reading, and reports each rule (I1 to I12, docs/protocol.md) that a fleet has
broken. A row is one preset: `submerge lab simulate --faults all-1 --seeds 30` is the same fleets.
The bound is that of the rule of three: with 95 % confidence, at most this share of such fleets
breaks a rule. Readings that were lost are those that no aggregator had acknowledged when a process
died, or that are with a part of the fleet that has gone for good: each is attributed to its cause.
"""

import blas  # noqa: F401 (before numpy: it sets one thread)
import measure
from page import page
from report import Table
from submerge_lab.simulate.run import collect
from submerge_lab.simulator import Plan

PRESETS = {
    "none": "no faults",
    "network": "messages lost, doubled, late; links cut",
    "kills": "the same, and processes killed between any two effects",
    "copies": "the same, and copied cards and stores",
    "twins": "two processes of one client",
    "all-1": "all at once",
    "channels-1": "all at once, and channels that come and go",
    "hostile-1": "all at once, and a malicious node",
}
SEEDS, QUICK = 30, 3


def room(quick: bool) -> list[Table]:
    """Run the fleets of every preset."""
    seeds = QUICK if quick else SEEDS
    rows: list[tuple[object, ...]] = []
    for preset, what in measure.progress(list(PRESETS.items()), "survived"):
        found = collect(Plan(faults=preset), range(seeds))
        rows.append(
            (
                preset,
                what,
                seeds,
                found.generated,
                found.counted,
                found.unattributed,
                len(found.violations),
                found.bound,
                max(one.settled_s or 0.0 for one in found.outcomes) / 60,
            )
        )
    columns = {
        "faults": "",
        "what": "",
        "fleets": "d",
        "readings": ",d",
        "counted": ",d",
        "not accounted for": "d",
        "rules broken": "d",
        "bound": ".1%",
        "longest to settle, min": ".0f",
    }
    return [Table("Simulated fleets", columns, rows)]


if __name__ == "__main__":
    page(room)
