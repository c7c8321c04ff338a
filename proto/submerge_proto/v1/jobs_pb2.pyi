from submerge_proto.v1 import header_pb2 as _header_pb2
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class JobPiece(_message.Message):
    __slots__ = ("header", "job", "up", "parcel", "weight", "number", "total", "data")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    PARCEL_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    TOTAL_FIELD_NUMBER: _ClassVar[int]
    DATA_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    job: str
    up: bool
    parcel: bytes
    weight: int
    number: int
    total: int
    data: bytes
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., job: _Optional[str] = ..., up: bool = ..., parcel: _Optional[bytes] = ..., weight: _Optional[int] = ..., number: _Optional[int] = ..., total: _Optional[int] = ..., data: _Optional[bytes] = ...) -> None: ...

class JobPieceTaken(_message.Message):
    __slots__ = ("header", "job", "up", "parcel", "have", "over")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    UP_FIELD_NUMBER: _ClassVar[int]
    PARCEL_FIELD_NUMBER: _ClassVar[int]
    HAVE_FIELD_NUMBER: _ClassVar[int]
    OVER_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    job: str
    up: bool
    parcel: bytes
    have: bytes
    over: bool
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., job: _Optional[str] = ..., up: bool = ..., parcel: _Optional[bytes] = ..., have: _Optional[bytes] = ..., over: bool = ...) -> None: ...

class JobMessage(_message.Message):
    __slots__ = ("piece", "taken")
    PIECE_FIELD_NUMBER: _ClassVar[int]
    TAKEN_FIELD_NUMBER: _ClassVar[int]
    piece: JobPiece
    taken: JobPieceTaken
    def __init__(self, piece: _Optional[_Union[JobPiece, _Mapping]] = ..., taken: _Optional[_Union[JobPieceTaken, _Mapping]] = ...) -> None: ...

class JobMessageTaken(_message.Message):
    __slots__ = ()
    def __init__(self) -> None: ...
