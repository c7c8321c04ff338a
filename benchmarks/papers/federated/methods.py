"""What the figures compare: ours at its defaults, the paper's SAPCA and SPCA, and the rivals.

The paper's own algorithms run as in its scripts, with misprints corrected: no spare directions,
never exact, rows as they are. Ours is `SAPCA(rank)`, the engine of `StreamingPCA`, as it is by
default; but it does not center, since the mean was removed beforehand.
"""

from collections.abc import Callable
from functools import partial

from contest.contender import Contender, Submerge
from contest.trackers.frequent_directions import FrequentDirections
from contest.trackers.grouse import Grouse
from contest.trackers.power_method import PowerMethod
from contest.trackers.spirit import Spirit
from papers.federated.follow import Array, Followed, follow
from papers.frame import Curve
from submerge import SapcaRank

ALPHA, BETA = 0.01, 0.10
"""The rank rule's bounds, in the paper's scripts."""

ENERGY = (0.95, 0.98)

MEASURED = (
    "core/submerge/pca",
    "benchmarks/contest",
    "benchmarks/papers/federated/follow.py",
    "benchmarks/papers/federated/methods.py",
    "benchmarks/papers/federated/streams.py",
    "lab/submerge_lab/replay/over_time.py",
)
"""Files that all figures depend on; each adds its own."""

OURS = "submerge"

Make = Callable[[], Contender]


def spca(rank: int, block: int) -> Submerge:
    """Return the paper's SPCA."""
    return Submerge(rank, block, center=False, exact="never", oversample=0)


def sapca(start: int, block: int, hold: int = 0) -> Submerge:
    """Return the paper's SAPCA with its bounds of 1 % and 10 %."""
    rule = SapcaRank(start, alpha=ALPHA, beta=BETA, hold=hold)
    return Submerge(rule, block, center=False, exact="never", oversample=0)


def submerge(rank: int) -> Submerge:
    """Return ours."""
    return Submerge(rank, center=False)


def rivals(rank: int, dim: int, *, forgetting: float) -> dict[str, Make]:
    """Return makers of the rivals, at the settings of the paper's comparison."""
    return {
        "SPIRIT": partial(Spirit, rank, forgetting, ENERGY),
        "PM": partial(PowerMethod, rank, block=dim),
        "GROUSE": partial(Grouse, rank),
        "FD": partial(FrequentDirections, rank),
    }


def bounded(start: int, X: Array, block: int, hold: int = 0) -> dict[str, Followed]:
    """Follow SAPCA, and SPCA at the least and at the largest rank that SAPCA had.

    The rank that it starts with counts too.
    """
    adaptive = follow(sapca(start, block, hold), X, block)
    lo, hi = min(start, *adaptive.ranks), max(start, *adaptive.ranks)
    found = {"SAPCA": adaptive, "SPCA lo": follow(spca(lo, block), X, block)}
    found["SPCA hi"] = found["SPCA lo"] if lo == hi else follow(spca(hi, block), X, block)
    return found


def compared(rank: int, X: Array, block: int, *, forgetting: float) -> dict[str, Followed]:
    """Follow all methods on rows X (n, dim)."""
    found = {OURS: follow(submerge(rank), X, block), **bounded(rank, X, block)}
    for name, make in rivals(rank, X.shape[1], forgetting=forgetting).items():
        found[name] = follow(make(), X, block)
    return found


def whose(name: str) -> str:
    """Return what a curve of this method is: "ours", or a rival's."""
    return "ours" if name.startswith((OURS, "SAPCA", "SPCA")) else "theirs"


def over_time(name: str, found: Followed, thin: int = 1) -> Curve:
    """Return a method's error over time as a curve; every `thin`-th block, and the last."""
    kept = sorted({*range(0, len(found.rows), thin), len(found.rows) - 1})
    x, y = [float(found.rows[i]) for i in kept], [found.errors[i] for i in kept]
    return Curve(name, x, y, whose=whose(name))
