"""One BLAS thread, so that a comparison is of algorithms and not of thread pools.

Importing this sets the variables that BLAS libraries read when NumPy is imported:
import it, or `measure`, first. `check` says what was really loaded, and refuses more
than one thread: a variable that came too late is otherwise silent.
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

    pools = threadpoolctl.threadpool_info()
    for pool in pools:
        if pool["num_threads"] != 1:
            raise RuntimeError(
                f"expected one thread in {pool['filepath']}, got {pool['num_threads']}:"
                " import blas before numpy"
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
