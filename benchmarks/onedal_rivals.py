"""oneDAL behind the face of `rivals`: Intel's streaming PCA, directly and as scikit-learn's.

scikit-learn-intelex is optional (`make .venv/onedal`, x86-64 alone): without it these rivals are
left out, and `available` says so. Both keep the whole cross product of the columns, O(dim^2)
memory. They are held to one thread, which BLAS variables do not do: oneDAL has a pool of its own.
"""

import functools
import importlib.util

import numpy as np

import measure

Array = measure.Array


@functools.cache
def available() -> bool:
    """Return whether oneDAL can be imported, on one thread; say so if it cannot."""
    if importlib.util.find_spec("onedal") is None:
        measure.say("oneDAL left out: scikit-learn-intelex is not installed (make .venv/onedal)")
        return False
    import daal4py

    daal4py.daalinit(1)
    if daal4py.num_threads() != 1:
        raise RuntimeError(f"expected one thread in oneDAL, got {daal4py.num_threads()}")
    return True


class OneDal:
    """`onedal.decomposition.IncrementalPCA`: sums of products, decomposed when read.

    It takes float64 or float32 rows, and sums in their precision.
    """

    def __init__(self, rank: int, dtype: type = np.float64) -> None:
        from onedal.decomposition import IncrementalPCA

        self._engine, self._dtype = IncrementalPCA(n_components=rank), dtype

    def partial_fit(self, block: Array) -> None:
        """Add a block's sums."""
        self._engine.partial_fit(block.astype(self._dtype, copy=False))

    def basis(self) -> Array:
        """Finalize, once, and return the components as columns."""
        return self._engine.finalize_fit().components_.T


class Intelex:
    """scikit-learn-intelex's IncrementalPCA: scikit-learn's face on oneDAL.

    It decomposes at each call, since it asks for its own `components_` to see whether it is the
    first. The first call has to bring `rank` rows, and is the only one that is checked: unchecked,
    it does not learn how many columns there are.
    """

    def __init__(self, rank: int) -> None:
        from sklearnex.preview.decomposition import IncrementalPCA

        self._engine, self._first = IncrementalPCA(n_components=rank), True

    def partial_fit(self, block: Array) -> None:
        """Learn a block."""
        self._engine.partial_fit(block, check_input=self._first)
        self._first = False

    def basis(self) -> Array:
        """Return the components as columns."""
        return self._engine.components_.T
