"""What tests of all estimators share: scikit-learn's battery, their names, what they say."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClusterMixin
from sklearn.utils.estimator_checks import estimator_checks_generator
from threadpoolctl import threadpool_limits

# k-means' threads wait for one another: where another program is busy, fifty times as long.
threadpool_limits(1, user_api="openmp")

# What scikit-learn runs on its own transformers only; those for pandas skip without it.
FOR_ITS_OWN = [
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_global_output_transform_pandas",
    "check_dataframe_column_names_consistency",
]


def battery(estimators: Iterable[BaseEstimator]) -> list[tuple[Any, Any]]:
    """Each estimator with each of scikit-learn's checks.

    What parametrize_with_checks does, as a list: scikit-learn 1.6 hands pytest a generator,
    which pytest 9 warns of, and a warning here is an error.
    """
    return [case for estimator in estimators for case in estimator_checks_generator(estimator)]


def what(case: object) -> str:
    """A check's own name, and an estimator's, in one line."""
    name = getattr(getattr(case, "func", case), "__name__", case)
    return " ".join(str(name).split())


def normal(n: int, dim: int = 4, *, seed: int = 0) -> np.ndarray:
    """Rows about 3 in each channel."""
    return np.random.default_rng(seed).standard_normal((n, dim)) + 3


def results(fitted: Any, X: Any) -> np.ndarray:
    """What an estimator makes of rows: clusters, or projections."""
    return fitted.predict(X) if isinstance(fitted, ClusterMixin) else fitted.transform(X)
