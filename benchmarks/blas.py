"""One BLAS thread, so that a comparison is of algorithms and not of thread pools.

Importing this sets the variables that BLAS libraries read when NumPy is imported, and that
processes inherit. `check` also limits what was loaded before, says what it is, and refuses a pool
that keeps more than one thread.
"""

import os

VARIABLES = (
    "OPENBLAS_NUM_THREADS",
    "OMP_NUM_THREADS",
    "MKL_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
)
os.environ.update(dict.fromkeys(VARIABLES, "1"))


def check() -> list[str]:
    """Return the loaded thread pools in words, one each; refuse any that is not alone."""
    import threadpoolctl

    threadpoolctl.threadpool_limits(1)
    pools = threadpoolctl.threadpool_info()
    for pool in pools:
        if pool["num_threads"] != 1:
            raise RuntimeError(
                f"expected one thread in {pool['filepath']}, got {pool['num_threads']}:"
                f" set {VARIABLES[0]}=1 and {VARIABLES[1]}=1"
            )
    return sorted(
        f"{pool['internal_api']} {pool['version']} ({pool.get('architecture', pool['user_api'])},"
        f" {pool['num_threads']} thread, {_owner(pool['filepath'])})"
        for pool in pools
    )


def _owner(path: str) -> str:
    """The package that ships the library: numpy.libs is numpy's."""
    folders = [part for part in path.split(os.sep) if part.endswith(".libs")]
    return folders[-1].removesuffix(".libs") if folders else "system"
