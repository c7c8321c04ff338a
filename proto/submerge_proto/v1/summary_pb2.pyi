from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Subspace(_message.Message):
    __slots__ = ("dim", "columns", "coarse", "scales", "sigma", "mean", "weight", "energy", "spectral_bound", "exact", "channel_energies", "whole", "sums", "step")
    DIM_FIELD_NUMBER: _ClassVar[int]
    COLUMNS_FIELD_NUMBER: _ClassVar[int]
    COARSE_FIELD_NUMBER: _ClassVar[int]
    SCALES_FIELD_NUMBER: _ClassVar[int]
    SIGMA_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    ENERGY_FIELD_NUMBER: _ClassVar[int]
    SPECTRAL_BOUND_FIELD_NUMBER: _ClassVar[int]
    EXACT_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_ENERGIES_FIELD_NUMBER: _ClassVar[int]
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    STEP_FIELD_NUMBER: _ClassVar[int]
    dim: int
    columns: bytes
    coarse: bytes
    scales: bytes
    sigma: bytes
    mean: bytes
    weight: float
    energy: float
    spectral_bound: float
    exact: bytes
    channel_energies: bytes
    whole: bool
    sums: bytes
    step: float
    def __init__(self, dim: _Optional[int] = ..., columns: _Optional[bytes] = ..., coarse: _Optional[bytes] = ..., scales: _Optional[bytes] = ..., sigma: _Optional[bytes] = ..., mean: _Optional[bytes] = ..., weight: _Optional[float] = ..., energy: _Optional[float] = ..., spectral_bound: _Optional[float] = ..., exact: _Optional[bytes] = ..., channel_energies: _Optional[bytes] = ..., whole: bool = ..., sums: _Optional[bytes] = ..., step: _Optional[float] = ...) -> None: ...

class Moments(_message.Message):
    __slots__ = ("count", "mean", "m2", "priorities", "points")
    COUNT_FIELD_NUMBER: _ClassVar[int]
    MEAN_FIELD_NUMBER: _ClassVar[int]
    M2_FIELD_NUMBER: _ClassVar[int]
    PRIORITIES_FIELD_NUMBER: _ClassVar[int]
    POINTS_FIELD_NUMBER: _ClassVar[int]
    count: int
    mean: bytes
    m2: bytes
    priorities: bytes
    points: bytes
    def __init__(self, count: _Optional[int] = ..., mean: _Optional[bytes] = ..., m2: _Optional[bytes] = ..., priorities: _Optional[bytes] = ..., points: _Optional[bytes] = ...) -> None: ...

class Factors(_message.Message):
    __slots__ = ("noise", "loadings")
    NOISE_FIELD_NUMBER: _ClassVar[int]
    LOADINGS_FIELD_NUMBER: _ClassVar[int]
    noise: bytes
    loadings: bytes
    def __init__(self, noise: _Optional[bytes] = ..., loadings: _Optional[bytes] = ...) -> None: ...

class ScoreSketches(_message.Message):
    __slots__ = ("spe", "t2", "linear", "maxima", "distance")
    SPE_FIELD_NUMBER: _ClassVar[int]
    T2_FIELD_NUMBER: _ClassVar[int]
    LINEAR_FIELD_NUMBER: _ClassVar[int]
    MAXIMA_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    spe: bytes
    t2: bytes
    linear: bytes
    maxima: BlockMaxima
    distance: bytes
    def __init__(self, spe: _Optional[bytes] = ..., t2: _Optional[bytes] = ..., linear: _Optional[bytes] = ..., maxima: _Optional[_Union[BlockMaxima, _Mapping]] = ..., distance: _Optional[bytes] = ...) -> None: ...

class BlockMaxima(_message.Message):
    __slots__ = ("spe", "t2", "linear", "longest", "channel", "distance", "smoothed", "block_s", "lengths", "ewma")
    SPE_FIELD_NUMBER: _ClassVar[int]
    T2_FIELD_NUMBER: _ClassVar[int]
    LINEAR_FIELD_NUMBER: _ClassVar[int]
    LONGEST_FIELD_NUMBER: _ClassVar[int]
    CHANNEL_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    SMOOTHED_FIELD_NUMBER: _ClassVar[int]
    BLOCK_S_FIELD_NUMBER: _ClassVar[int]
    LENGTHS_FIELD_NUMBER: _ClassVar[int]
    EWMA_FIELD_NUMBER: _ClassVar[int]
    spe: bytes
    t2: bytes
    linear: bytes
    longest: int
    channel: bytes
    distance: bytes
    smoothed: bytes
    block_s: float
    lengths: _containers.RepeatedScalarFieldContainer[int]
    ewma: bytes
    def __init__(self, spe: _Optional[bytes] = ..., t2: _Optional[bytes] = ..., linear: _Optional[bytes] = ..., longest: _Optional[int] = ..., channel: _Optional[bytes] = ..., distance: _Optional[bytes] = ..., smoothed: _Optional[bytes] = ..., block_s: _Optional[float] = ..., lengths: _Optional[_Iterable[int]] = ..., ewma: _Optional[bytes] = ...) -> None: ...

class Counts(_message.Message):
    __slots__ = ("learnt", "withheld", "lost", "moved")
    LEARNT_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    MOVED_FIELD_NUMBER: _ClassVar[int]
    learnt: int
    withheld: int
    lost: int
    moved: int
    def __init__(self, learnt: _Optional[int] = ..., withheld: _Optional[int] = ..., lost: _Optional[int] = ..., moved: _Optional[int] = ...) -> None: ...

class Census(_message.Message):
    __slots__ = ("nodes", "ages")
    NODES_FIELD_NUMBER: _ClassVar[int]
    AGES_FIELD_NUMBER: _ClassVar[int]
    nodes: int
    ages: _containers.RepeatedScalarFieldContainer[int]
    def __init__(self, nodes: _Optional[int] = ..., ages: _Optional[_Iterable[int]] = ...) -> None: ...

class Limits(_message.Message):
    __slots__ = ("shares", "spe", "t2", "n", "linear", "distance")
    SHARES_FIELD_NUMBER: _ClassVar[int]
    SPE_FIELD_NUMBER: _ClassVar[int]
    T2_FIELD_NUMBER: _ClassVar[int]
    N_FIELD_NUMBER: _ClassVar[int]
    LINEAR_FIELD_NUMBER: _ClassVar[int]
    DISTANCE_FIELD_NUMBER: _ClassVar[int]
    shares: _containers.RepeatedScalarFieldContainer[float]
    spe: _containers.RepeatedScalarFieldContainer[float]
    t2: _containers.RepeatedScalarFieldContainer[float]
    n: int
    linear: _containers.RepeatedScalarFieldContainer[float]
    distance: _containers.RepeatedScalarFieldContainer[float]
    def __init__(self, shares: _Optional[_Iterable[float]] = ..., spe: _Optional[_Iterable[float]] = ..., t2: _Optional[_Iterable[float]] = ..., n: _Optional[int] = ..., linear: _Optional[_Iterable[float]] = ..., distance: _Optional[_Iterable[float]] = ...) -> None: ...
