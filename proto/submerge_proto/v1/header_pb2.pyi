from google.protobuf.internal import containers as _containers
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Incarnation(_message.Message):
    __slots__ = ("created_ms", "nonce")
    CREATED_MS_FIELD_NUMBER: _ClassVar[int]
    NONCE_FIELD_NUMBER: _ClassVar[int]
    created_ms: int
    nonce: int
    def __init__(self, created_ms: _Optional[int] = ..., nonce: _Optional[int] = ...) -> None: ...

class Header(_message.Message):
    __slots__ = ("version", "versions", "node", "group", "incarnation", "seq", "software")
    VERSION_FIELD_NUMBER: _ClassVar[int]
    VERSIONS_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    GROUP_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    SOFTWARE_FIELD_NUMBER: _ClassVar[int]
    version: int
    versions: _containers.RepeatedScalarFieldContainer[int]
    node: str
    group: str
    incarnation: Incarnation
    seq: int
    software: str
    def __init__(self, version: _Optional[int] = ..., versions: _Optional[_Iterable[int]] = ..., node: _Optional[str] = ..., group: _Optional[str] = ..., incarnation: _Optional[_Union[Incarnation, _Mapping]] = ..., seq: _Optional[int] = ..., software: _Optional[str] = ...) -> None: ...
