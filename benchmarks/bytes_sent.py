"""Bytes that a client sends up, beside what other ways would send for the same rows.

A *report* is what a real `ClientNode` of four sends after five days, with everything that a report
holds: directions, factors, sketches for limits, counts. It replaces the one before, so a client
that was away for a day sends one. The others are computed, in float32 as reports are, and favoured:
no headers, and no acknowledgement. *Scatter* is the upper half of the covariance's matrix, the mean
and the number of rows, which merge exactly. *Rows* are the readings of an hour or of a day at one
in 31 seconds. *Directions alone* are 16 of them with their variances and the mean: what federated
PCA needs without alarms.
"""

import blas  # noqa: F401 (before numpy: it sets one thread)
import measure
from page import page
from report import Table
from submerge.protocol.settings import AlarmSettings
from watching import PERIOD_S, RANK_MAX, Steady, Weighed

WIDTHS = (24, 54, 200, 400)
FLOAT32 = 4


def report_bytes(dim: int) -> int:
    """Return the bytes of the last report of a fleet after five days."""
    fleet = Weighed(Steady(dim), AlarmSettings())
    while fleet.hour < fleet.hours:
        fleet.passes()
    return fleet.report


def ways(dim: int) -> dict[str, int]:
    """Return bytes by what is sent."""
    rows = round(3600 / PERIOD_S)
    return {
        "submerge: report": report_bytes(dim),
        "directions alone": FLOAT32 * (RANK_MAX * (dim + 1) + dim),
        "scatter": FLOAT32 * (dim * (dim + 1) // 2 + dim + 1),
        "rows of an hour": FLOAT32 * rows * dim,
        "rows of a day": FLOAT32 * 24 * rows * dim,
    }


def room(quick: bool) -> list[Table]:
    """Weigh every width; `quick`: two of them."""
    widths = WIDTHS[:2] if quick else WIDTHS
    found = {dim: ways(dim) for dim in measure.progress(widths, "bytes sent")}
    rows = [(dim, sent, size) for dim, sizes in found.items() for sent, size in sizes.items()]
    return [Table("Bytes", {"channels": "d", "sent": "", "bytes": ",d"}, rows)]


if __name__ == "__main__":
    page(room)
