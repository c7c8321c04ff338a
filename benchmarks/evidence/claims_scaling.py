"""Claims of scaling, from figures of papers: nodes against time, and the root's error."""

from evidence.claim import Claim, Pick

OURS, PRINTED = "submerge, default", "SPCA and merge as printed"
ROWS, NODES = 128_000, 32


def _timed(method: str, column: str, named: str, rows: int = ROWS) -> Pick:
    where = {"T": rows, "method": method, "nodes": NODES}
    return Pick("federated/scaling", "Time by part", column, where, named)


def _root(method: str, named: str) -> Pick:
    where = {"T": ROWS, "method": method, "alpha": 1.0}
    return Pick("federated/scaling", "Squared error of the root", f"{NODES} nodes", where, named)


CLAIMS = (
    *(
        Claim(
            "scaling",
            f"amortised time, T = {rows // 1000}k",
            f"{rows:,} rows by {NODES} nodes: amortised time over that of one node / {NODES}",
            ".2f",
            "less",
            _timed(OURS, "over 1 / nodes", "submerge", rows),
            asked=1.2,
        )
        for rows in (128_000, 256_000, 512_000)
    ),
    Claim(
        "scaling",
        f"{NODES} nodes, beside the paper's method",
        f"{ROWS:,} rows by {NODES} nodes: amortised seconds",
        ".3f",
        "less",
        _timed(OURS, "amortised, s", "submerge"),
        (_timed(PRINTED, "amortised, s", PRINTED),),
    ),
    Claim(
        "scaling",
        f"root's error, {NODES} nodes",
        f"{ROWS:,} rows by {NODES} nodes: the root's error above the optimum, Synth(1)",
        ".5f",
        "less",
        _root(OURS, "submerge"),
        asked=0.005,
    ),
    Claim(
        "scaling",
        f"root's error, {NODES} nodes, beside the paper's method",
        f"{ROWS:,} rows by {NODES} nodes: the root's error above the optimum, Synth(1)",
        ".5f",
        "less",
        _root(OURS, "submerge"),
        (_root(PRINTED, PRINTED),),
    ),
)
