from submerge_proto.v1 import summary_pb2 as _summary_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Learnt(_message.Message):
    __slots__ = ("model", "subspace", "linear", "moments", "scores", "chunks", "origin", "monitors", "lags", "period_s", "rank", "linear_rank", "when")
    MODEL_FIELD_NUMBER: _ClassVar[int]
    SUBSPACE_FIELD_NUMBER: _ClassVar[int]
    LINEAR_FIELD_NUMBER: _ClassVar[int]
    MOMENTS_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    CHUNKS_FIELD_NUMBER: _ClassVar[int]
    ORIGIN_FIELD_NUMBER: _ClassVar[int]
    MONITORS_FIELD_NUMBER: _ClassVar[int]
    LAGS_FIELD_NUMBER: _ClassVar[int]
    PERIOD_S_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    LINEAR_RANK_FIELD_NUMBER: _ClassVar[int]
    WHEN_FIELD_NUMBER: _ClassVar[int]
    model: bytes
    subspace: _summary_pb2.Subspace
    linear: _summary_pb2.Subspace
    moments: _summary_pb2.Moments
    scores: _summary_pb2.ScoreSketches
    chunks: Chunks
    origin: str
    monitors: _containers.RepeatedCompositeFieldContainer[MachineMonitor]
    lags: int
    period_s: float
    rank: int
    linear_rank: int
    when: str
    def __init__(self, model: _Optional[bytes] = ..., subspace: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ..., linear: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ..., moments: _Optional[_Union[_summary_pb2.Moments, _Mapping]] = ..., scores: _Optional[_Union[_summary_pb2.ScoreSketches, _Mapping]] = ..., chunks: _Optional[_Union[Chunks, _Mapping]] = ..., origin: _Optional[str] = ..., monitors: _Optional[_Iterable[_Union[MachineMonitor, _Mapping]]] = ..., lags: _Optional[int] = ..., period_s: _Optional[float] = ..., rank: _Optional[int] = ..., linear_rank: _Optional[int] = ..., when: _Optional[str] = ...) -> None: ...

class Chunks(_message.Message):
    __slots__ = ("keys", "rows", "first", "last", "machines", "machine", "files", "file")
    KEYS_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    LAST_FIELD_NUMBER: _ClassVar[int]
    MACHINES_FIELD_NUMBER: _ClassVar[int]
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    FILES_FIELD_NUMBER: _ClassVar[int]
    FILE_FIELD_NUMBER: _ClassVar[int]
    keys: bytes
    rows: bytes
    first: bytes
    last: bytes
    machines: _containers.RepeatedScalarFieldContainer[str]
    machine: bytes
    files: _containers.RepeatedScalarFieldContainer[str]
    file: bytes
    def __init__(self, keys: _Optional[bytes] = ..., rows: _Optional[bytes] = ..., first: _Optional[bytes] = ..., last: _Optional[bytes] = ..., machines: _Optional[_Iterable[str]] = ..., machine: _Optional[bytes] = ..., files: _Optional[_Iterable[str]] = ..., file: _Optional[bytes] = ...) -> None: ...

class MachineMonitor(_message.Message):
    __slots__ = ("machine", "state")
    MACHINE_FIELD_NUMBER: _ClassVar[int]
    STATE_FIELD_NUMBER: _ClassVar[int]
    machine: str
    state: bytes
    def __init__(self, machine: _Optional[str] = ..., state: _Optional[bytes] = ...) -> None: ...
