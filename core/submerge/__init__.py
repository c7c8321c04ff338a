"""Streaming PCA that merges: every device learns a subspace, and subspaces merge.

Three nouns: a `Subspace` is all that is remembered, a `SAPCA` learns one from a
stream, a `MergeTree` keeps the merge of many. Two verbs: `partial_fit` and `merge`.
Nothing in this package does input or output, reads a clock, or draws random numbers of its own.
"""

from submerge._linalg import Array
from submerge.errors import PeerError, SchemaMismatch, ShapeError, SubmergeError, UsageError
from submerge.features import FeatureMap, Identity
from submerge.pca.merging import merge
from submerge.pca.rank import EnergyRank, FixedRank, RankRule, SapcaRank
from submerge.pca.sapca import SAPCA
from submerge.pca.saved import dumps, loads
from submerge.pca.score import contributions, hotelling, spe
from submerge.pca.subspace import Subspace
from submerge.pca.tree import MergeTree
from submerge.schema import Channel, Scaling, Schema

__version__ = "0.6.0"

__all__ = [
    "SAPCA",
    "Array",
    "Channel",
    "EnergyRank",
    "FeatureMap",
    "FixedRank",
    "Identity",
    "MergeTree",
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
