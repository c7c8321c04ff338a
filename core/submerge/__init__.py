"""Streaming PCA that merges: every device learns a subspace, and subspaces merge.

Three nouns: a `Subspace` is all that is remembered, a `SAPCA` learns one from a
stream, a `MergeTree` keeps the merge of many. Two verbs: `partial_fit` and `merge`.
Nothing in this package does input or output, reads a clock, or draws random numbers of its own.
`Model`, which reads files, stands in a package above: it is imported when it is used.
"""

import typing as _typing

from submerge._linalg import Array
from submerge.errors import PeerError, SchemaMismatch, ShapeError, SubmergeError, UsageError
from submerge.features import FeatureMap, Identity
from submerge.pca.merging import merge
from submerge.pca.rank import EnergyRank, FixedRank, RankRule, SapcaRank
from submerge.pca.sapca import SAPCA
from submerge.pca.score import contributions, hotelling, spe
from submerge.pca.serial import dumps, loads
from submerge.pca.subspace import Subspace
from submerge.pca.tree import MergeTree
from submerge.schema import Channel, Scaling, Schema

__version__ = "0.7.0"

__all__ = [
    "SAPCA",
    "Array",
    "Channel",
    "EnergyRank",
    "FeatureMap",
    "FixedRank",
    "Identity",
    "MergeTree",
    "Model",
    "PeerError",
    "RankRule",
    "SapcaRank",
    "Scaling",
    "Schema",
    "SchemaMismatch",
    "ShapeError",
    "SubmergeError",
    "Subspace",
    "UsageError",
    "__version__",
    "contributions",
    "dumps",
    "hotelling",
    "loads",
    "merge",
    "spe",
]

# Doors upward (docs/decisions/0042): a user looks for these here, and they stand on packages that
# import this one. They are found when they are used. Nothing in this package may use them.
if _typing.TYPE_CHECKING:
    Model: _typing.Any
else:

    def __getattr__(name: str) -> _typing.Any:
        if name not in ("Model", "dask", "river", "pyod"):
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        from submerge._faces import face

        return face(name) if name == "Model" else importlib.import_module(f"submerge.{name}")


def __dir__() -> list[str]:
    return [*globals(), "Model"]
