from submerge_proto.v1 import aggregator_service_pb2 as _aggregator_service_pb2
from submerge_proto.v1 import header_pb2 as _header_pb2
from submerge_proto.v1 import summary_pb2 as _summary_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    CAUSE_UNSPECIFIED: _ClassVar[Cause]
    CAUSE_OPERATOR: _ClassVar[Cause]
    CAUSE_SHRUNK: _ClassVar[Cause]
    CAUSE_EQUIVOCATED_TWICE: _ClassVar[Cause]
    CAUSE_UNREADABLE: _ClassVar[Cause]
CAUSE_UNSPECIFIED: Cause
CAUSE_OPERATOR: Cause
CAUSE_SHRUNK: Cause
CAUSE_EQUIVOCATED_TWICE: Cause
CAUSE_UNREADABLE: Cause

class Pin(_message.Message):
    __slots__ = ("parent", "incarnation", "top")
    PARENT_FIELD_NUMBER: _ClassVar[int]
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    parent: str
    incarnation: _header_pb2.Incarnation
    top: bool
    def __init__(self, parent: _Optional[str] = ..., incarnation: _Optional[_Union[_header_pb2.Incarnation, _Mapping]] = ..., top: bool = ...) -> None: ...

class MeasuredRows(_message.Message):
    __slots__ = ("whole", "rows", "weights", "schema")
    WHOLE_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    WEIGHTS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    whole: _summary_pb2.Subspace
    rows: bytes
    weights: bytes
    schema: bytes
    def __init__(self, whole: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ..., rows: _Optional[bytes] = ..., weights: _Optional[bytes] = ..., schema: _Optional[bytes] = ...) -> None: ...

class Checkpoint(_message.Message):
    __slots__ = ("report", "pin", "delivered", "measured")
    REPORT_FIELD_NUMBER: _ClassVar[int]
    PIN_FIELD_NUMBER: _ClassVar[int]
    DELIVERED_FIELD_NUMBER: _ClassVar[int]
    MEASURED_FIELD_NUMBER: _ClassVar[int]
    report: _aggregator_service_pb2.ReportRequest
    pin: Pin
    delivered: int
    measured: MeasuredRows
    def __init__(self, report: _Optional[_Union[_aggregator_service_pb2.ReportRequest, _Mapping]] = ..., pin: _Optional[_Union[Pin, _Mapping]] = ..., delivered: _Optional[int] = ..., measured: _Optional[_Union[MeasuredRows, _Mapping]] = ...) -> None: ...

class Past(_message.Message):
    __slots__ = ("finals", "absorbed", "lost", "lifetime")
    FINALS_FIELD_NUMBER: _ClassVar[int]
    ABSORBED_FIELD_NUMBER: _ClassVar[int]
    LOST_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_FIELD_NUMBER: _ClassVar[int]
    finals: _containers.RepeatedCompositeFieldContainer[Checkpoint]
    absorbed: _header_pb2.Incarnation
    lost: int
    lifetime: int
    def __init__(self, finals: _Optional[_Iterable[_Union[Checkpoint, _Mapping]]] = ..., absorbed: _Optional[_Union[_header_pb2.Incarnation, _Mapping]] = ..., lost: _Optional[int] = ..., lifetime: _Optional[int] = ...) -> None: ...

class OwnMean(_message.Message):
    __slots__ = ("rows", "features", "weight", "count", "span_s")
    ROWS_FIELD_NUMBER: _ClassVar[int]
    FEATURES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    COUNT_FIELD_NUMBER: _ClassVar[int]
    SPAN_S_FIELD_NUMBER: _ClassVar[int]
    rows: bytes
    features: bytes
    weight: float
    count: int
    span_s: float
    def __init__(self, rows: _Optional[bytes] = ..., features: _Optional[bytes] = ..., weight: _Optional[float] = ..., count: _Optional[int] = ..., span_s: _Optional[float] = ...) -> None: ...

class Hours(_message.Message):
    __slots__ = ("windows", "hours", "spared", "watched_s", "allowed", "block_s", "before")
    class Value(_message.Message):
        __slots__ = ("of", "value")
        OF_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        of: str
        value: float
        def __init__(self, of: _Optional[str] = ..., value: _Optional[float] = ...) -> None: ...
    class Windows(_message.Message):
        __slots__ = ("of", "before", "filling")
        OF_FIELD_NUMBER: _ClassVar[int]
        BEFORE_FIELD_NUMBER: _ClassVar[int]
        FILLING_FIELD_NUMBER: _ClassVar[int]
        of: str
        before: bytes
        filling: bytes
        def __init__(self, of: _Optional[str] = ..., before: _Optional[bytes] = ..., filling: _Optional[bytes] = ...) -> None: ...
    WINDOWS_FIELD_NUMBER: _ClassVar[int]
    HOURS_FIELD_NUMBER: _ClassVar[int]
    SPARED_FIELD_NUMBER: _ClassVar[int]
    WATCHED_S_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    BLOCK_S_FIELD_NUMBER: _ClassVar[int]
    BEFORE_FIELD_NUMBER: _ClassVar[int]
    windows: _containers.RepeatedCompositeFieldContainer[Hours.Windows]
    hours: int
    spared: _containers.RepeatedCompositeFieldContainer[Hours.Value]
    watched_s: float
    allowed: float
    block_s: float
    before: _summary_pb2.BlockMaxima
    def __init__(self, windows: _Optional[_Iterable[_Union[Hours.Windows, _Mapping]]] = ..., hours: _Optional[int] = ..., spared: _Optional[_Iterable[_Union[Hours.Value, _Mapping]]] = ..., watched_s: _Optional[float] = ..., allowed: _Optional[float] = ..., block_s: _Optional[float] = ..., before: _Optional[_Union[_summary_pb2.BlockMaxima, _Mapping]] = ...) -> None: ...

class DetectorState(_message.Message):
    __slots__ = ("alarms", "held_s", "frozen", "blame", "excused", "raised", "confirmed", "hours", "highest")
    class Highest(_message.Message):
        __slots__ = ("of", "value", "rows", "mean")
        OF_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        ROWS_FIELD_NUMBER: _ClassVar[int]
        MEAN_FIELD_NUMBER: _ClassVar[int]
        of: str
        value: float
        rows: int
        mean: float
        def __init__(self, of: _Optional[str] = ..., value: _Optional[float] = ..., rows: _Optional[int] = ..., mean: _Optional[float] = ...) -> None: ...
    ALARMS_FIELD_NUMBER: _ClassVar[int]
    HELD_S_FIELD_NUMBER: _ClassVar[int]
    FROZEN_FIELD_NUMBER: _ClassVar[int]
    BLAME_FIELD_NUMBER: _ClassVar[int]
    EXCUSED_FIELD_NUMBER: _ClassVar[int]
    RAISED_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    HOURS_FIELD_NUMBER: _ClassVar[int]
    HIGHEST_FIELD_NUMBER: _ClassVar[int]
    alarms: _containers.RepeatedCompositeFieldContainer[_aggregator_service_pb2.Alarm]
    held_s: float
    frozen: _containers.RepeatedCompositeFieldContainer[Hours.Value]
    blame: bytes
    excused: _containers.RepeatedScalarFieldContainer[int]
    raised: int
    confirmed: int
    hours: Hours
    highest: _containers.RepeatedCompositeFieldContainer[DetectorState.Highest]
    def __init__(self, alarms: _Optional[_Iterable[_Union[_aggregator_service_pb2.Alarm, _Mapping]]] = ..., held_s: _Optional[float] = ..., frozen: _Optional[_Iterable[_Union[Hours.Value, _Mapping]]] = ..., blame: _Optional[bytes] = ..., excused: _Optional[_Iterable[int]] = ..., raised: _Optional[int] = ..., confirmed: _Optional[int] = ..., hours: _Optional[_Union[Hours, _Mapping]] = ..., highest: _Optional[_Iterable[_Union[DetectorState.Highest, _Mapping]]] = ...) -> None: ...

class Column(_message.Message):
    __slots__ = ("name", "values")
    NAME_FIELD_NUMBER: _ClassVar[int]
    VALUES_FIELD_NUMBER: _ClassVar[int]
    name: str
    values: bytes
    def __init__(self, name: _Optional[str] = ..., values: _Optional[bytes] = ...) -> None: ...

class ResidualScale(_message.Message):
    __slots__ = ("squares", "weight", "span_s")
    SQUARES_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    SPAN_S_FIELD_NUMBER: _ClassVar[int]
    squares: bytes
    weight: bytes
    span_s: float
    def __init__(self, squares: _Optional[bytes] = ..., weight: _Optional[bytes] = ..., span_s: _Optional[float] = ...) -> None: ...

class NodeMonitor(_message.Message):
    __slots__ = ("fingerprint", "own", "detector", "desired", "reference", "held", "habits", "run_lengths", "residual_scale", "level", "offset", "resolution", "scatter", "silences", "unsure", "duty", "departures")
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    OWN_FIELD_NUMBER: _ClassVar[int]
    DETECTOR_FIELD_NUMBER: _ClassVar[int]
    DESIRED_FIELD_NUMBER: _ClassVar[int]
    REFERENCE_FIELD_NUMBER: _ClassVar[int]
    HELD_FIELD_NUMBER: _ClassVar[int]
    HABITS_FIELD_NUMBER: _ClassVar[int]
    RUN_LENGTHS_FIELD_NUMBER: _ClassVar[int]
    RESIDUAL_SCALE_FIELD_NUMBER: _ClassVar[int]
    LEVEL_FIELD_NUMBER: _ClassVar[int]
    OFFSET_FIELD_NUMBER: _ClassVar[int]
    RESOLUTION_FIELD_NUMBER: _ClassVar[int]
    SCATTER_FIELD_NUMBER: _ClassVar[int]
    SILENCES_FIELD_NUMBER: _ClassVar[int]
    UNSURE_FIELD_NUMBER: _ClassVar[int]
    DUTY_FIELD_NUMBER: _ClassVar[int]
    DEPARTURES_FIELD_NUMBER: _ClassVar[int]
    fingerprint: bytes
    own: OwnMean
    detector: DetectorState
    desired: _aggregator_service_pb2.DesiredState
    reference: _aggregator_service_pb2.Model
    held: OwnMean
    habits: _containers.RepeatedCompositeFieldContainer[Column]
    run_lengths: _containers.RepeatedCompositeFieldContainer[Column]
    residual_scale: ResidualScale
    level: NewLevel
    offset: bytes
    resolution: _containers.RepeatedCompositeFieldContainer[Column]
    scatter: OwnScatter
    silences: _containers.RepeatedCompositeFieldContainer[Column]
    unsure: bytes
    duty: _containers.RepeatedCompositeFieldContainer[Column]
    departures: _containers.RepeatedCompositeFieldContainer[Column]
    def __init__(self, fingerprint: _Optional[bytes] = ..., own: _Optional[_Union[OwnMean, _Mapping]] = ..., detector: _Optional[_Union[DetectorState, _Mapping]] = ..., desired: _Optional[_Union[_aggregator_service_pb2.DesiredState, _Mapping]] = ..., reference: _Optional[_Union[_aggregator_service_pb2.Model, _Mapping]] = ..., held: _Optional[_Union[OwnMean, _Mapping]] = ..., habits: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., run_lengths: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., residual_scale: _Optional[_Union[ResidualScale, _Mapping]] = ..., level: _Optional[_Union[NewLevel, _Mapping]] = ..., offset: _Optional[bytes] = ..., resolution: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., scatter: _Optional[_Union[OwnScatter, _Mapping]] = ..., silences: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., unsure: _Optional[bytes] = ..., duty: _Optional[_Iterable[_Union[Column, _Mapping]]] = ..., departures: _Optional[_Iterable[_Union[Column, _Mapping]]] = ...) -> None: ...

class OwnScatter(_message.Message):
    __slots__ = ("sums", "weight", "evidence")
    SUMS_FIELD_NUMBER: _ClassVar[int]
    WEIGHT_FIELD_NUMBER: _ClassVar[int]
    EVIDENCE_FIELD_NUMBER: _ClassVar[int]
    sums: bytes
    weight: float
    evidence: bytes
    def __init__(self, sums: _Optional[bytes] = ..., weight: _Optional[float] = ..., evidence: _Optional[bytes] = ...) -> None: ...

class NewLevel(_message.Message):
    __slots__ = ("mean", "half", "calm_s")
    MEAN_FIELD_NUMBER: _ClassVar[int]
    HALF_FIELD_NUMBER: _ClassVar[int]
    CALM_S_FIELD_NUMBER: _ClassVar[int]
    mean: OwnMean
    half: OwnMean
    calm_s: float
    def __init__(self, mean: _Optional[_Union[OwnMean, _Mapping]] = ..., half: _Optional[_Union[OwnMean, _Mapping]] = ..., calm_s: _Optional[float] = ...) -> None: ...

class DesiredStates(_message.Message):
    __slots__ = ("desired_states",)
    DESIRED_STATES_FIELD_NUMBER: _ClassVar[int]
    desired_states: _containers.RepeatedCompositeFieldContainer[_aggregator_service_pb2.DesiredState]
    def __init__(self, desired_states: _Optional[_Iterable[_Union[_aggregator_service_pb2.DesiredState, _Mapping]]] = ...) -> None: ...

class StoreIdentity(_message.Message):
    __slots__ = ("incarnation", "pin")
    INCARNATION_FIELD_NUMBER: _ClassVar[int]
    PIN_FIELD_NUMBER: _ClassVar[int]
    incarnation: _header_pb2.Incarnation
    pin: Pin
    def __init__(self, incarnation: _Optional[_Union[_header_pb2.Incarnation, _Mapping]] = ..., pin: _Optional[_Union[Pin, _Mapping]] = ...) -> None: ...

class Lineage(_message.Message):
    __slots__ = ("seq", "fence", "past", "admitted")
    SEQ_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    PAST_FIELD_NUMBER: _ClassVar[int]
    ADMITTED_FIELD_NUMBER: _ClassVar[int]
    seq: int
    fence: bytes
    past: _containers.RepeatedCompositeFieldContainer[_aggregator_service_pb2.Left]
    admitted: bytes
    def __init__(self, seq: _Optional[int] = ..., fence: _Optional[bytes] = ..., past: _Optional[_Iterable[_Union[_aggregator_service_pb2.Left, _Mapping]]] = ..., admitted: _Optional[bytes] = ...) -> None: ...

class Row(_message.Message):
    __slots__ = ("report", "as_of_s", "digest", "as_received")
    REPORT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_S_FIELD_NUMBER: _ClassVar[int]
    DIGEST_FIELD_NUMBER: _ClassVar[int]
    AS_RECEIVED_FIELD_NUMBER: _ClassVar[int]
    report: _aggregator_service_pb2.ReportRequest
    as_of_s: float
    digest: bytes
    as_received: bool
    def __init__(self, report: _Optional[_Union[_aggregator_service_pb2.ReportRequest, _Mapping]] = ..., as_of_s: _Optional[float] = ..., digest: _Optional[bytes] = ..., as_received: bool = ...) -> None: ...

class Sealed(_message.Message):
    __slots__ = ("subspace", "fingerprint", "moments", "counts", "as_of_s", "linear")
    SUBSPACE_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    MOMENTS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    AS_OF_S_FIELD_NUMBER: _ClassVar[int]
    LINEAR_FIELD_NUMBER: _ClassVar[int]
    subspace: _summary_pb2.Subspace
    fingerprint: bytes
    moments: _summary_pb2.Moments
    counts: _summary_pb2.Counts
    as_of_s: float
    linear: _summary_pb2.Subspace
    def __init__(self, subspace: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ..., fingerprint: _Optional[bytes] = ..., moments: _Optional[_Union[_summary_pb2.Moments, _Mapping]] = ..., counts: _Optional[_Union[_summary_pb2.Counts, _Mapping]] = ..., as_of_s: _Optional[float] = ..., linear: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ...) -> None: ...

class History(_message.Message):
    __slots__ = ("learnt", "most_rows", "pushed_s")
    LEARNT_FIELD_NUMBER: _ClassVar[int]
    MOST_ROWS_FIELD_NUMBER: _ClassVar[int]
    PUSHED_S_FIELD_NUMBER: _ClassVar[int]
    learnt: bytes
    most_rows: float
    pushed_s: float
    def __init__(self, learnt: _Optional[bytes] = ..., most_rows: _Optional[float] = ..., pushed_s: _Optional[float] = ...) -> None: ...

class Membership(_message.Message):
    __slots__ = ("closed", "floor_ms", "fences")
    class Closed(_message.Message):
        __slots__ = ("incarnation", "seq")
        INCARNATION_FIELD_NUMBER: _ClassVar[int]
        SEQ_FIELD_NUMBER: _ClassVar[int]
        incarnation: _header_pb2.Incarnation
        seq: int
        def __init__(self, incarnation: _Optional[_Union[_header_pb2.Incarnation, _Mapping]] = ..., seq: _Optional[int] = ...) -> None: ...
    class Fence(_message.Message):
        __slots__ = ("incarnation", "fence")
        INCARNATION_FIELD_NUMBER: _ClassVar[int]
        FENCE_FIELD_NUMBER: _ClassVar[int]
        incarnation: _header_pb2.Incarnation
        fence: bytes
        def __init__(self, incarnation: _Optional[_Union[_header_pb2.Incarnation, _Mapping]] = ..., fence: _Optional[bytes] = ...) -> None: ...
    CLOSED_FIELD_NUMBER: _ClassVar[int]
    FLOOR_MS_FIELD_NUMBER: _ClassVar[int]
    FENCES_FIELD_NUMBER: _ClassVar[int]
    closed: _containers.RepeatedCompositeFieldContainer[Membership.Closed]
    floor_ms: int
    fences: _containers.RepeatedCompositeFieldContainer[Membership.Fence]
    def __init__(self, closed: _Optional[_Iterable[_Union[Membership.Closed, _Mapping]]] = ..., floor_ms: _Optional[int] = ..., fences: _Optional[_Iterable[_Union[Membership.Fence, _Mapping]]] = ...) -> None: ...

class Nodes(_message.Message):
    __slots__ = ("names",)
    NAMES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    def __init__(self, names: _Optional[_Iterable[str]] = ...) -> None: ...

class Quarantined(_message.Message):
    __slots__ = ("names", "nodes")
    class Node(_message.Message):
        __slots__ = ("name", "cause", "since_s")
        NAME_FIELD_NUMBER: _ClassVar[int]
        CAUSE_FIELD_NUMBER: _ClassVar[int]
        SINCE_S_FIELD_NUMBER: _ClassVar[int]
        name: str
        cause: Cause
        since_s: float
        def __init__(self, name: _Optional[str] = ..., cause: _Optional[_Union[Cause, str]] = ..., since_s: _Optional[float] = ...) -> None: ...
    NAMES_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    names: _containers.RepeatedScalarFieldContainer[str]
    nodes: _containers.RepeatedCompositeFieldContainer[Quarantined.Node]
    def __init__(self, names: _Optional[_Iterable[str]] = ..., nodes: _Optional[_Iterable[_Union[Quarantined.Node, _Mapping]]] = ...) -> None: ...

class QuarantineSlips(_message.Message):
    __slots__ = ("nodes",)
    class Node(_message.Message):
        __slots__ = ("name", "at_s", "digest")
        NAME_FIELD_NUMBER: _ClassVar[int]
        AT_S_FIELD_NUMBER: _ClassVar[int]
        DIGEST_FIELD_NUMBER: _ClassVar[int]
        name: str
        at_s: float
        digest: bytes
        def __init__(self, name: _Optional[str] = ..., at_s: _Optional[float] = ..., digest: _Optional[bytes] = ...) -> None: ...
    NODES_FIELD_NUMBER: _ClassVar[int]
    nodes: _containers.RepeatedCompositeFieldContainer[QuarantineSlips.Node]
    def __init__(self, nodes: _Optional[_Iterable[_Union[QuarantineSlips.Node, _Mapping]]] = ...) -> None: ...

class GroupTime(_message.Message):
    __slots__ = ("elapsed_s", "wall_s")
    ELAPSED_S_FIELD_NUMBER: _ClassVar[int]
    WALL_S_FIELD_NUMBER: _ClassVar[int]
    elapsed_s: float
    wall_s: float
    def __init__(self, elapsed_s: _Optional[float] = ..., wall_s: _Optional[float] = ...) -> None: ...

class Number(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: int
    def __init__(self, value: _Optional[int] = ...) -> None: ...

class Real(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: float
    def __init__(self, value: _Optional[float] = ...) -> None: ...

class Text(_message.Message):
    __slots__ = ("value",)
    VALUE_FIELD_NUMBER: _ClassVar[int]
    value: bytes
    def __init__(self, value: _Optional[bytes] = ...) -> None: ...

class Release(_message.Message):
    __slots__ = ("rho", "spent", "share", "number", "rows", "left", "told", "noises", "sums", "fingerprint")
    class Noise(_message.Message):
        __slots__ = ("level", "numbers")
        LEVEL_FIELD_NUMBER: _ClassVar[int]
        NUMBERS_FIELD_NUMBER: _ClassVar[int]
        level: int
        numbers: bytes
        def __init__(self, level: _Optional[int] = ..., numbers: _Optional[bytes] = ...) -> None: ...
    RHO_FIELD_NUMBER: _ClassVar[int]
    SPENT_FIELD_NUMBER: _ClassVar[int]
    SHARE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    TOLD_FIELD_NUMBER: _ClassVar[int]
    NOISES_FIELD_NUMBER: _ClassVar[int]
    SUMS_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    rho: float
    spent: float
    share: float
    number: int
    rows: int
    left: int
    told: _aggregator_service_pb2.Told
    noises: _containers.RepeatedCompositeFieldContainer[Release.Noise]
    sums: _summary_pb2.Subspace
    fingerprint: bytes
    def __init__(self, rho: _Optional[float] = ..., spent: _Optional[float] = ..., share: _Optional[float] = ..., number: _Optional[int] = ..., rows: _Optional[int] = ..., left: _Optional[int] = ..., told: _Optional[_Union[_aggregator_service_pb2.Told, _Mapping]] = ..., noises: _Optional[_Iterable[_Union[Release.Noise, _Mapping]]] = ..., sums: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ..., fingerprint: _Optional[bytes] = ...) -> None: ...
