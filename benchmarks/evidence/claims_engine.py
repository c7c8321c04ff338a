"""Claims of the engine: accuracy, speed, memory."""

from evidence.claim import Claim, Pick

STREAMS = {
    "Light": "Light",
    "the generated room, scaled": "generated room",
    **{f"Synth({alpha:g})": f"Synth({alpha:g})" for alpha in (1e-4, 1e-3, 0.5, 1, 2, 3)},
}
"""Streams of equal_rank.py, and their short names."""

BOUNDED = (
    "scikit-learn IncrementalPCA",
    "gensim merge, blocks by svd",
    "gensim merge, blocks by Gram",
    "Algorithm 3 to the letter",
    "running scatter",
)
ALL_ROWS = (
    "numpy.linalg.svd of all rows",
    "scikit-learn PCA, covariance_eigh",
    "fbpca",
    "faiss PCAMatrix",
)
"""Contenders of speed.py; the second kind holds all rows."""

BY_CALLS = "submerge, calls of 50"
"""At the block that it chooses itself."""

CASES = ((48, 10), (400, 10), (1000, 10), (10_000, 10), (400, 50), (1000, 50), (10_000, 50))


def _rows(stream: str) -> str:
    """Return what a stream is, in words."""
    if stream.startswith("Synth"):
        return f"synthetic rows, d = 400, eigenvalues i^-{stream[6:-1]}"
    return "48 light sensors (Light)" if stream == "Light" else stream


def _of_stream(stream: str, method: str, column: str) -> Pick:
    where = {"stream": stream, "method": method}
    return Pick("equal_rank", "Rank 10", column, where, method)


def _accuracy(stream: str, name: str, *, within: bool) -> Claim:
    memory = _of_stream(stream, "submerge", "peak kB") if within else None
    beside = f"peers with {'no more' if within else 'any'} memory"
    return Claim(
        "accuracy",
        f"error, {name}{', no more memory' if within else ''}",
        f"{_rows(stream)}: error over the optimum; {beside}",
        ".5f",
        "less",
        _of_stream(stream, "submerge", "over the optimum"),
        (
            Pick(
                "equal_rank",
                "Rank 10",
                "over the optimum",
                {"stream": stream, "rank": 10},
                "{method}, {setting}",
                but=("submerge",),
                within=memory,
            ),
        ),
    )


def _of_case(dim: int, rank: int, column: str, contender: object, named: str) -> Pick:
    return Pick("speed", f"d = {dim}, r = {rank},", column, {"contender": contender}, named)


def _case(
    section: str, dim: int, rank: int, column: str, what: str, spec: str, ours: str = "submerge"
) -> Claim:
    return Claim(
        section,
        f"{section}, d = {dim}, r = {rank}",
        f"d = {dim}, r = {rank}: {what}; peers of bounded memory",
        spec,
        "less",
        _of_case(dim, rank, column, ours, ours),
        (_of_case(dim, rank, column, BOUNDED, "{contender}"),),
    )


def _as_accurate(stream: str, name: str) -> Claim:
    error = _of_stream(stream, "submerge", "over the optimum")
    where = {"stream": stream, "rank": 10}
    named = "{method}, {setting}"
    return Claim(
        "memory",
        f"memory, {name}, as accurate",
        f"{_rows(stream)}: peak kB; peers that are as accurate",
        ",.0f",
        "less",
        _of_stream(stream, "submerge", "peak kB"),
        (Pick("equal_rank", "Rank 10", "peak kB", where, named, but=("submerge",), within=error),),
    )


def _beside_all_rows(dim: int) -> Claim:
    column = "µs/row, least"
    return Claim(
        "speed",
        f"speed, d = {dim}, all rows held",
        f"d = {dim}, r = 10: µs a row; peers that hold all rows",
        ".2f",
        "less",
        _of_case(dim, 10, column, "submerge", "submerge"),
        (_of_case(dim, 10, column, ALL_ROWS, "{contender}"),),
    )


def _bound(dim: int) -> Claim:
    table, where = "Memory over", {"d": dim, "dtype": "float64"}
    return Claim(
        "memory",
        f"memory's bound, d = {dim}",
        f"d = {dim}, r = 10: peak kB of a thousand calls, and the bound that is documented",
        ",.0f",
        "less",
        Pick("memory", table, "tracemalloc", where, "submerge", one="most"),
        asked=Pick("memory", table, "bound", where, "bound", one="least"),
    )


CLAIMS = (
    *(_accuracy(at, name, within=True) for at, name in STREAMS.items()),
    *(_accuracy(at, name, within=False) for at, name in STREAMS.items()),
    *(_case("speed", *case, "µs/row, least", "µs a row", ".2f") for case in CASES),
    *(_beside_all_rows(dim) for dim, rank in CASES if rank == 10),
    *(_as_accurate(at, name) for at, name in STREAMS.items()),
    *(_case("memory", *case, "peak kB", "peak kB", ",.0f", BY_CALLS) for case in CASES),
    *(_bound(dim) for dim in (48, 400, 1000, 10_000)),
)
