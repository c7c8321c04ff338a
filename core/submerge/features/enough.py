"""features_for(): how many random Fourier features are enough, by a bound from lambda and epsilon.

With D features whose Gram matrix is Z, and n rows with kernel matrix K (ones on its diagonal),

    (1 - eps) (K + lambda I) <= Z + lambda I <= (1 + eps) (K + lambda I)

holds with probability 1 - failure if D >= (8 / 3) (n / lambda) ln(16 s / failure) / eps^2, where
s = tr K (K + lambda I)^-1 <= n / lambda is the number of directions that stand above lambda. Then
directions with eigenvalues well above lambda are found, and what a rank-k projection misses is
within eps of the truth up to k lambda. The bound is for independent features and any rows; on real
rows far fewer are enough, and orthogonal ones need fewer again (benchmarks/sparse_rows.py).

References
----------
Avron, Kapralov, Musco, Musco, Velingker & Zandieh, Random Fourier Features for Kernel Ridge
Regression, ICML 2017, Theorem 7. Musco & Woodruff, Is Input Sparsity Time Possible for Kernel
Low-Rank Approximation?, NIPS 2017 (such features in the time of the entries).
"""

from __future__ import annotations

import math

from submerge.errors import UsageError
from submerge.features.checks import is_number


def features_for(share: float, eps: float, *, failure: float = 0.1) -> int:
    """Return an even number of features for which the bound holds.

    Parameters
    ----------
    share : float
        lambda / n, above 0 and below 1: eigenvalues of K below this share of its trace may be lost.
    eps : float
        Relative error, above 0 and below 1.
    failure : float
        Probability that the bound does not hold, above 0 and below 1.

    Raises
    ------
    UsageError
        If one is out of range.

    Examples
    --------
    >>> from submerge.features import features_for
    >>> features_for(0.1, 0.5)
    788
    """
    for name, value in (("share", share), ("eps", eps), ("failure", failure)):
        if not is_number(value) or not 0 < value < 1:
            raise UsageError(f"{name} must be above 0 and below 1, got {value!r}")
    enough = 8 / 3 / share * math.log(16 / share / failure) / eps**2
    return 2 * math.ceil(enough / 2)
