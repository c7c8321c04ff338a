from submerge_proto.v1 import header_pb2 as _header_pb2
from submerge_proto.v1 import jobs_pb2 as _jobs_pb2
from submerge_proto.v1 import summary_pb2 as _summary_pb2
from google.protobuf.internal import containers as _containers
from google.protobuf.internal import enum_type_wrapper as _enum_type_wrapper
from google.protobuf import descriptor as _descriptor
from google.protobuf import message as _message
from typing import ClassVar as _ClassVar, Iterable as _Iterable, Mapping as _Mapping, Optional as _Optional, Union as _Union

DESCRIPTOR: _descriptor.FileDescriptor

class Reason(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
    __slots__ = ()
    REASON_UNSPECIFIED: _ClassVar[Reason]
    REASON_ACK: _ClassVar[Reason]
    REASON_UNAVAILABLE: _ClassVar[Reason]
    REASON_WRONG_PARENT: _ClassVar[Reason]
    REASON_STALE: _ClassVar[Reason]
    REASON_SHRUNK: _ClassVar[Reason]
    REASON_EQUIVOCATION: _ClassVar[Reason]
    REASON_FENCED: _ClassVar[Reason]
    REASON_LINEAGE: _ClassVar[Reason]
    REASON_SCHEMA: _ClassVar[Reason]
    REASON_INVALID: _ClassVar[Reason]
    REASON_BANNED: _ClassVar[Reason]
    REASON_VERSION: _ClassVar[Reason]
    REASON_DENIED: _ClassVar[Reason]
REASON_UNSPECIFIED: Reason
REASON_ACK: Reason
REASON_UNAVAILABLE: Reason
REASON_WRONG_PARENT: Reason
REASON_STALE: Reason
REASON_SHRUNK: Reason
REASON_EQUIVOCATION: Reason
REASON_FENCED: Reason
REASON_LINEAGE: Reason
REASON_SCHEMA: Reason
REASON_INVALID: Reason
REASON_BANNED: Reason
REASON_VERSION: Reason
REASON_DENIED: Reason

class Left(_message.Message):
    __slots__ = ("fence", "seq")
    FENCE_FIELD_NUMBER: _ClassVar[int]
    SEQ_FIELD_NUMBER: _ClassVar[int]
    fence: bytes
    seq: int
    def __init__(self, fence: _Optional[bytes] = ..., seq: _Optional[int] = ...) -> None: ...

class JoinRequest(_message.Message):
    __slots__ = ("header", "fence", "past_fences", "schema", "early", "share_points")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    PAST_FENCES_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    EARLY_FIELD_NUMBER: _ClassVar[int]
    SHARE_POINTS_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    fence: bytes
    past_fences: _containers.RepeatedCompositeFieldContainer[Left]
    schema: bytes
    early: int
    share_points: int
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., fence: _Optional[bytes] = ..., past_fences: _Optional[_Iterable[_Union[Left, _Mapping]]] = ..., schema: _Optional[bytes] = ..., early: _Optional[int] = ..., share_points: _Optional[int] = ...) -> None: ...

class JoinResponse(_message.Message):
    __slots__ = ("header", "reason", "fence", "pinned", "top", "floor_ms", "schema", "lines", "whole_scatter")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    FLOOR_MS_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    LINES_FIELD_NUMBER: _ClassVar[int]
    WHOLE_SCATTER_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    reason: Reason
    fence: bytes
    pinned: _header_pb2.Incarnation
    top: bool
    floor_ms: int
    schema: bytes
    lines: _containers.RepeatedScalarFieldContainer[str]
    whole_scatter: bool
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., reason: _Optional[_Union[Reason, str]] = ..., fence: _Optional[bytes] = ..., pinned: _Optional[_Union[_header_pb2.Incarnation, _Mapping]] = ..., top: bool = ..., floor_ms: _Optional[int] = ..., schema: _Optional[bytes] = ..., lines: _Optional[_Iterable[str]] = ..., whole_scatter: bool = ...) -> None: ...

class ReportRequest(_message.Message):
    __slots__ = ("header", "final", "pinned", "fence", "fingerprint", "subspace", "moments", "counts", "as_of_s", "synced", "model_version", "lifetime", "census", "scores", "linear", "certified_until_s", "alarm_status", "trail", "earlier", "algorithm", "rank", "own_share", "unlike", "left", "told")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    FINAL_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    SUBSPACE_FIELD_NUMBER: _ClassVar[int]
    MOMENTS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    AS_OF_S_FIELD_NUMBER: _ClassVar[int]
    SYNCED_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    LIFETIME_FIELD_NUMBER: _ClassVar[int]
    CENSUS_FIELD_NUMBER: _ClassVar[int]
    SCORES_FIELD_NUMBER: _ClassVar[int]
    LINEAR_FIELD_NUMBER: _ClassVar[int]
    CERTIFIED_UNTIL_S_FIELD_NUMBER: _ClassVar[int]
    ALARM_STATUS_FIELD_NUMBER: _ClassVar[int]
    TRAIL_FIELD_NUMBER: _ClassVar[int]
    EARLIER_FIELD_NUMBER: _ClassVar[int]
    ALGORITHM_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    OWN_SHARE_FIELD_NUMBER: _ClassVar[int]
    UNLIKE_FIELD_NUMBER: _ClassVar[int]
    LEFT_FIELD_NUMBER: _ClassVar[int]
    TOLD_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    final: bool
    pinned: _header_pb2.Incarnation
    fence: bytes
    fingerprint: bytes
    subspace: _summary_pb2.Subspace
    moments: _summary_pb2.Moments
    counts: _summary_pb2.Counts
    as_of_s: float
    synced: bool
    model_version: int
    lifetime: int
    census: _summary_pb2.Census
    scores: _summary_pb2.ScoreSketches
    linear: _summary_pb2.Subspace
    certified_until_s: float
    alarm_status: AlarmStatus
    trail: ScoreTrail
    earlier: EarlierSums
    algorithm: str
    rank: int
    own_share: float
    unlike: float
    left: int
    told: Told
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., final: bool = ..., pinned: _Optional[_Union[_header_pb2.Incarnation, _Mapping]] = ..., fence: _Optional[bytes] = ..., fingerprint: _Optional[bytes] = ..., subspace: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ..., moments: _Optional[_Union[_summary_pb2.Moments, _Mapping]] = ..., counts: _Optional[_Union[_summary_pb2.Counts, _Mapping]] = ..., as_of_s: _Optional[float] = ..., synced: bool = ..., model_version: _Optional[int] = ..., lifetime: _Optional[int] = ..., census: _Optional[_Union[_summary_pb2.Census, _Mapping]] = ..., scores: _Optional[_Union[_summary_pb2.ScoreSketches, _Mapping]] = ..., linear: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ..., certified_until_s: _Optional[float] = ..., alarm_status: _Optional[_Union[AlarmStatus, _Mapping]] = ..., trail: _Optional[_Union[ScoreTrail, _Mapping]] = ..., earlier: _Optional[_Union[EarlierSums, _Mapping]] = ..., algorithm: _Optional[str] = ..., rank: _Optional[int] = ..., own_share: _Optional[float] = ..., unlike: _Optional[float] = ..., left: _Optional[int] = ..., told: _Optional[_Union[Told, _Mapping]] = ...) -> None: ...

class ScoreTrail(_message.Message):
    __slots__ = ("last_minute", "levels")
    LAST_MINUTE_FIELD_NUMBER: _ClassVar[int]
    LEVELS_FIELD_NUMBER: _ClassVar[int]
    last_minute: int
    levels: bytes
    def __init__(self, last_minute: _Optional[int] = ..., levels: _Optional[bytes] = ...) -> None: ...

class EarlierSums(_message.Message):
    __slots__ = ("fingerprint", "subspace", "counts")
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    SUBSPACE_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    fingerprint: bytes
    subspace: _summary_pb2.Subspace
    counts: _summary_pb2.Counts
    def __init__(self, fingerprint: _Optional[bytes] = ..., subspace: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ..., counts: _Optional[_Union[_summary_pb2.Counts, _Mapping]] = ...) -> None: ...

class Alarm(_message.Message):
    __slots__ = ("node", "number", "began_s", "peaked_s", "ended_s", "worst", "cause", "top", "model_version", "withheld", "verdict", "first", "deviations", "settled", "provisional", "looks", "repeated")
    class Cause(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        CAUSE_UNSPECIFIED: _ClassVar[Alarm.Cause]
        CAUSE_SPE: _ClassVar[Alarm.Cause]
        CAUSE_T2: _ClassVar[Alarm.Cause]
        CAUSE_LINEAR: _ClassVar[Alarm.Cause]
        CAUSE_STUCK: _ClassVar[Alarm.Cause]
        CAUSE_CHANNEL: _ClassVar[Alarm.Cause]
        CAUSE_DISTANCE: _ClassVar[Alarm.Cause]
        CAUSE_SMOOTHED: _ClassVar[Alarm.Cause]
        CAUSE_EWMA: _ClassVar[Alarm.Cause]
        CAUSE_SILENT: _ClassVar[Alarm.Cause]
        CAUSE_DUTY: _ClassVar[Alarm.Cause]
        CAUSE_JUMP: _ClassVar[Alarm.Cause]
    CAUSE_UNSPECIFIED: Alarm.Cause
    CAUSE_SPE: Alarm.Cause
    CAUSE_T2: Alarm.Cause
    CAUSE_LINEAR: Alarm.Cause
    CAUSE_STUCK: Alarm.Cause
    CAUSE_CHANNEL: Alarm.Cause
    CAUSE_DISTANCE: Alarm.Cause
    CAUSE_SMOOTHED: Alarm.Cause
    CAUSE_EWMA: Alarm.Cause
    CAUSE_SILENT: Alarm.Cause
    CAUSE_DUTY: Alarm.Cause
    CAUSE_JUMP: Alarm.Cause
    class Verdict(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
        __slots__ = ()
        VERDICT_UNSPECIFIED: _ClassVar[Alarm.Verdict]
        VERDICT_ACCEPTED: _ClassVar[Alarm.Verdict]
        VERDICT_REJECTED: _ClassVar[Alarm.Verdict]
    VERDICT_UNSPECIFIED: Alarm.Verdict
    VERDICT_ACCEPTED: Alarm.Verdict
    VERDICT_REJECTED: Alarm.Verdict
    class Share(_message.Message):
        __slots__ = ("channel", "share")
        CHANNEL_FIELD_NUMBER: _ClassVar[int]
        SHARE_FIELD_NUMBER: _ClassVar[int]
        channel: str
        share: float
        def __init__(self, channel: _Optional[str] = ..., share: _Optional[float] = ...) -> None: ...
    class Deviation(_message.Message):
        __slots__ = ("channel", "value", "expected")
        CHANNEL_FIELD_NUMBER: _ClassVar[int]
        VALUE_FIELD_NUMBER: _ClassVar[int]
        EXPECTED_FIELD_NUMBER: _ClassVar[int]
        channel: str
        value: float
        expected: float
        def __init__(self, channel: _Optional[str] = ..., value: _Optional[float] = ..., expected: _Optional[float] = ...) -> None: ...
    class Looks(_message.Message):
        __slots__ = ("like", "others", "left", "twins")
        class Like(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            LIKE_UNSPECIFIED: _ClassVar[Alarm.Looks.Like]
            LIKE_SENSOR: _ClassVar[Alarm.Looks.Like]
            LIKE_PROCESS: _ClassVar[Alarm.Looks.Like]
        LIKE_UNSPECIFIED: Alarm.Looks.Like
        LIKE_SENSOR: Alarm.Looks.Like
        LIKE_PROCESS: Alarm.Looks.Like
        LIKE_FIELD_NUMBER: _ClassVar[int]
        OTHERS_FIELD_NUMBER: _ClassVar[int]
        LEFT_FIELD_NUMBER: _ClassVar[int]
        TWINS_FIELD_NUMBER: _ClassVar[int]
        like: Alarm.Looks.Like
        others: int
        left: float
        twins: bool
        def __init__(self, like: _Optional[_Union[Alarm.Looks.Like, str]] = ..., others: _Optional[int] = ..., left: _Optional[float] = ..., twins: bool = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BEGAN_S_FIELD_NUMBER: _ClassVar[int]
    PEAKED_S_FIELD_NUMBER: _ClassVar[int]
    ENDED_S_FIELD_NUMBER: _ClassVar[int]
    WORST_FIELD_NUMBER: _ClassVar[int]
    CAUSE_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    MODEL_VERSION_FIELD_NUMBER: _ClassVar[int]
    WITHHELD_FIELD_NUMBER: _ClassVar[int]
    VERDICT_FIELD_NUMBER: _ClassVar[int]
    FIRST_FIELD_NUMBER: _ClassVar[int]
    DEVIATIONS_FIELD_NUMBER: _ClassVar[int]
    SETTLED_FIELD_NUMBER: _ClassVar[int]
    PROVISIONAL_FIELD_NUMBER: _ClassVar[int]
    LOOKS_FIELD_NUMBER: _ClassVar[int]
    REPEATED_FIELD_NUMBER: _ClassVar[int]
    node: str
    number: int
    began_s: float
    peaked_s: float
    ended_s: float
    worst: float
    cause: Alarm.Cause
    top: _containers.RepeatedCompositeFieldContainer[Alarm.Share]
    model_version: int
    withheld: int
    verdict: Alarm.Verdict
    first: _containers.RepeatedCompositeFieldContainer[Alarm.Share]
    deviations: _containers.RepeatedCompositeFieldContainer[Alarm.Deviation]
    settled: bool
    provisional: bool
    looks: Alarm.Looks
    repeated: bool
    def __init__(self, node: _Optional[str] = ..., number: _Optional[int] = ..., began_s: _Optional[float] = ..., peaked_s: _Optional[float] = ..., ended_s: _Optional[float] = ..., worst: _Optional[float] = ..., cause: _Optional[_Union[Alarm.Cause, str]] = ..., top: _Optional[_Iterable[_Union[Alarm.Share, _Mapping]]] = ..., model_version: _Optional[int] = ..., withheld: _Optional[int] = ..., verdict: _Optional[_Union[Alarm.Verdict, str]] = ..., first: _Optional[_Iterable[_Union[Alarm.Share, _Mapping]]] = ..., deviations: _Optional[_Iterable[_Union[Alarm.Deviation, _Mapping]]] = ..., settled: bool = ..., provisional: bool = ..., looks: _Optional[_Union[Alarm.Looks, _Mapping]] = ..., repeated: bool = ...) -> None: ...

class AlarmStatus(_message.Message):
    __slots__ = ("states", "alarms", "open", "watched_s", "allowed", "raised", "confirmed", "armed_in_s", "desired", "silent_s", "typical", "provisional_rows", "waiting")
    class States(_message.Message):
        __slots__ = ("learning", "armed", "alarm", "paused", "stale")
        LEARNING_FIELD_NUMBER: _ClassVar[int]
        ARMED_FIELD_NUMBER: _ClassVar[int]
        ALARM_FIELD_NUMBER: _ClassVar[int]
        PAUSED_FIELD_NUMBER: _ClassVar[int]
        STALE_FIELD_NUMBER: _ClassVar[int]
        learning: int
        armed: int
        alarm: int
        paused: int
        stale: int
        def __init__(self, learning: _Optional[int] = ..., armed: _Optional[int] = ..., alarm: _Optional[int] = ..., paused: _Optional[int] = ..., stale: _Optional[int] = ...) -> None: ...
    class Typical(_message.Message):
        __slots__ = ("promised", "unconfirmed", "nodes")
        PROMISED_FIELD_NUMBER: _ClassVar[int]
        UNCONFIRMED_FIELD_NUMBER: _ClassVar[int]
        NODES_FIELD_NUMBER: _ClassVar[int]
        promised: float
        unconfirmed: int
        nodes: int
        def __init__(self, promised: _Optional[float] = ..., unconfirmed: _Optional[int] = ..., nodes: _Optional[int] = ...) -> None: ...
    class Waiting(_message.Message):
        __slots__ = ("what", "rows", "of")
        class What(int, metaclass=_enum_type_wrapper.EnumTypeWrapper):
            __slots__ = ()
            WHAT_UNSPECIFIED: _ClassVar[AlarmStatus.Waiting.What]
            WHAT_MODEL: _ClassVar[AlarmStatus.Waiting.What]
            WHAT_MEAN: _ClassVar[AlarmStatus.Waiting.What]
            WHAT_REPORT: _ClassVar[AlarmStatus.Waiting.What]
            WHAT_LIMITS: _ClassVar[AlarmStatus.Waiting.What]
        WHAT_UNSPECIFIED: AlarmStatus.Waiting.What
        WHAT_MODEL: AlarmStatus.Waiting.What
        WHAT_MEAN: AlarmStatus.Waiting.What
        WHAT_REPORT: AlarmStatus.Waiting.What
        WHAT_LIMITS: AlarmStatus.Waiting.What
        WHAT_FIELD_NUMBER: _ClassVar[int]
        ROWS_FIELD_NUMBER: _ClassVar[int]
        OF_FIELD_NUMBER: _ClassVar[int]
        what: AlarmStatus.Waiting.What
        rows: int
        of: int
        def __init__(self, what: _Optional[_Union[AlarmStatus.Waiting.What, str]] = ..., rows: _Optional[int] = ..., of: _Optional[int] = ...) -> None: ...
    STATES_FIELD_NUMBER: _ClassVar[int]
    ALARMS_FIELD_NUMBER: _ClassVar[int]
    OPEN_FIELD_NUMBER: _ClassVar[int]
    WATCHED_S_FIELD_NUMBER: _ClassVar[int]
    ALLOWED_FIELD_NUMBER: _ClassVar[int]
    RAISED_FIELD_NUMBER: _ClassVar[int]
    CONFIRMED_FIELD_NUMBER: _ClassVar[int]
    ARMED_IN_S_FIELD_NUMBER: _ClassVar[int]
    DESIRED_FIELD_NUMBER: _ClassVar[int]
    SILENT_S_FIELD_NUMBER: _ClassVar[int]
    TYPICAL_FIELD_NUMBER: _ClassVar[int]
    PROVISIONAL_ROWS_FIELD_NUMBER: _ClassVar[int]
    WAITING_FIELD_NUMBER: _ClassVar[int]
    states: AlarmStatus.States
    alarms: _containers.RepeatedCompositeFieldContainer[Alarm]
    open: int
    watched_s: float
    allowed: float
    raised: int
    confirmed: int
    armed_in_s: float
    desired: int
    silent_s: _containers.RepeatedScalarFieldContainer[int]
    typical: AlarmStatus.Typical
    provisional_rows: float
    waiting: AlarmStatus.Waiting
    def __init__(self, states: _Optional[_Union[AlarmStatus.States, _Mapping]] = ..., alarms: _Optional[_Iterable[_Union[Alarm, _Mapping]]] = ..., open: _Optional[int] = ..., watched_s: _Optional[float] = ..., allowed: _Optional[float] = ..., raised: _Optional[int] = ..., confirmed: _Optional[int] = ..., armed_in_s: _Optional[float] = ..., desired: _Optional[int] = ..., silent_s: _Optional[_Iterable[int]] = ..., typical: _Optional[_Union[AlarmStatus.Typical, _Mapping]] = ..., provisional_rows: _Optional[float] = ..., waiting: _Optional[_Union[AlarmStatus.Waiting, _Mapping]] = ...) -> None: ...

class DesiredState(_message.Message):
    __slots__ = ("node", "number", "paused", "verdicts", "banned", "drill", "quarantined", "forget", "missed", "certificate")
    class Verdict(_message.Message):
        __slots__ = ("alarm", "accept")
        ALARM_FIELD_NUMBER: _ClassVar[int]
        ACCEPT_FIELD_NUMBER: _ClassVar[int]
        alarm: int
        accept: bool
        def __init__(self, alarm: _Optional[int] = ..., accept: bool = ...) -> None: ...
    class Missed(_message.Message):
        __slots__ = ("began_s", "ended_s", "channel", "withdrawn")
        BEGAN_S_FIELD_NUMBER: _ClassVar[int]
        ENDED_S_FIELD_NUMBER: _ClassVar[int]
        CHANNEL_FIELD_NUMBER: _ClassVar[int]
        WITHDRAWN_FIELD_NUMBER: _ClassVar[int]
        began_s: float
        ended_s: float
        channel: str
        withdrawn: bool
        def __init__(self, began_s: _Optional[float] = ..., ended_s: _Optional[float] = ..., channel: _Optional[str] = ..., withdrawn: bool = ...) -> None: ...
    NODE_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PAUSED_FIELD_NUMBER: _ClassVar[int]
    VERDICTS_FIELD_NUMBER: _ClassVar[int]
    BANNED_FIELD_NUMBER: _ClassVar[int]
    DRILL_FIELD_NUMBER: _ClassVar[int]
    QUARANTINED_FIELD_NUMBER: _ClassVar[int]
    FORGET_FIELD_NUMBER: _ClassVar[int]
    MISSED_FIELD_NUMBER: _ClassVar[int]
    CERTIFICATE_FIELD_NUMBER: _ClassVar[int]
    node: str
    number: int
    paused: bool
    verdicts: _containers.RepeatedCompositeFieldContainer[DesiredState.Verdict]
    banned: bool
    drill: int
    quarantined: bool
    forget: int
    missed: _containers.RepeatedCompositeFieldContainer[DesiredState.Missed]
    certificate: bytes
    def __init__(self, node: _Optional[str] = ..., number: _Optional[int] = ..., paused: bool = ..., verdicts: _Optional[_Iterable[_Union[DesiredState.Verdict, _Mapping]]] = ..., banned: bool = ..., drill: _Optional[int] = ..., quarantined: bool = ..., forget: _Optional[int] = ..., missed: _Optional[_Iterable[_Union[DesiredState.Missed, _Mapping]]] = ..., certificate: _Optional[bytes] = ...) -> None: ...

class ReportResponse(_message.Message):
    __slots__ = ("header", "reason", "fence", "pinned", "top", "newest", "root", "durable", "floor_ms", "desired_states")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    FENCE_FIELD_NUMBER: _ClassVar[int]
    PINNED_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    NEWEST_FIELD_NUMBER: _ClassVar[int]
    ROOT_FIELD_NUMBER: _ClassVar[int]
    DURABLE_FIELD_NUMBER: _ClassVar[int]
    FLOOR_MS_FIELD_NUMBER: _ClassVar[int]
    DESIRED_STATES_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    reason: Reason
    fence: bytes
    pinned: _header_pb2.Incarnation
    top: bool
    newest: int
    root: _header_pb2.Incarnation
    durable: int
    floor_ms: int
    desired_states: _containers.RepeatedCompositeFieldContainer[DesiredState]
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., reason: _Optional[_Union[Reason, str]] = ..., fence: _Optional[bytes] = ..., pinned: _Optional[_Union[_header_pb2.Incarnation, _Mapping]] = ..., top: bool = ..., newest: _Optional[int] = ..., root: _Optional[_Union[_header_pb2.Incarnation, _Mapping]] = ..., durable: _Optional[int] = ..., floor_ms: _Optional[int] = ..., desired_states: _Optional[_Iterable[_Union[DesiredState, _Mapping]]] = ...) -> None: ...

class DrillRequest(_message.Message):
    __slots__ = ("header", "node", "fingerprint", "as_of_s", "number", "rows", "spans", "within", "at_most_per_s", "channels")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NODE_FIELD_NUMBER: _ClassVar[int]
    FINGERPRINT_FIELD_NUMBER: _ClassVar[int]
    AS_OF_S_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    ROWS_FIELD_NUMBER: _ClassVar[int]
    SPANS_FIELD_NUMBER: _ClassVar[int]
    WITHIN_FIELD_NUMBER: _ClassVar[int]
    AT_MOST_PER_S_FIELD_NUMBER: _ClassVar[int]
    CHANNELS_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    node: str
    fingerprint: bytes
    as_of_s: float
    number: int
    rows: int
    spans: int
    within: int
    at_most_per_s: float
    channels: bytes
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., node: _Optional[str] = ..., fingerprint: _Optional[bytes] = ..., as_of_s: _Optional[float] = ..., number: _Optional[int] = ..., rows: _Optional[int] = ..., spans: _Optional[int] = ..., within: _Optional[int] = ..., at_most_per_s: _Optional[float] = ..., channels: _Optional[bytes] = ...) -> None: ...

class DrillResponse(_message.Message):
    __slots__ = ("header", "reason")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    reason: Reason
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., reason: _Optional[_Union[Reason, str]] = ...) -> None: ...

class Question(_message.Message):
    __slots__ = ("header", "number", "path", "topic", "about", "after", "since_s", "step_s")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    PATH_FIELD_NUMBER: _ClassVar[int]
    TOPIC_FIELD_NUMBER: _ClassVar[int]
    ABOUT_FIELD_NUMBER: _ClassVar[int]
    AFTER_FIELD_NUMBER: _ClassVar[int]
    SINCE_S_FIELD_NUMBER: _ClassVar[int]
    STEP_S_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    number: int
    path: _containers.RepeatedScalarFieldContainer[str]
    topic: str
    about: str
    after: str
    since_s: int
    step_s: int
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., number: _Optional[int] = ..., path: _Optional[_Iterable[str]] = ..., topic: _Optional[str] = ..., about: _Optional[str] = ..., after: _Optional[str] = ..., since_s: _Optional[int] = ..., step_s: _Optional[int] = ...) -> None: ...

class ReplyRequest(_message.Message):
    __slots__ = ("header", "number", "body", "problem")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    NUMBER_FIELD_NUMBER: _ClassVar[int]
    BODY_FIELD_NUMBER: _ClassVar[int]
    PROBLEM_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    number: int
    body: bytes
    problem: str
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., number: _Optional[int] = ..., body: _Optional[bytes] = ..., problem: _Optional[str] = ...) -> None: ...

class ReplyResponse(_message.Message):
    __slots__ = ("header", "reason")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    REASON_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    reason: Reason
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., reason: _Optional[_Union[Reason, str]] = ...) -> None: ...

class WatchRequest(_message.Message):
    __slots__ = ("header", "jobs")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    JOBS_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    jobs: bool
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., jobs: bool = ...) -> None: ...

class WatchResponse(_message.Message):
    __slots__ = ("hello", "model", "answer", "question", "job")
    HELLO_FIELD_NUMBER: _ClassVar[int]
    MODEL_FIELD_NUMBER: _ClassVar[int]
    ANSWER_FIELD_NUMBER: _ClassVar[int]
    QUESTION_FIELD_NUMBER: _ClassVar[int]
    JOB_FIELD_NUMBER: _ClassVar[int]
    hello: Hello
    model: Model
    answer: ReportResponse
    question: Question
    job: _jobs_pb2.JobMessage
    def __init__(self, hello: _Optional[_Union[Hello, _Mapping]] = ..., model: _Optional[_Union[Model, _Mapping]] = ..., answer: _Optional[_Union[ReportResponse, _Mapping]] = ..., question: _Optional[_Union[Question, _Mapping]] = ..., job: _Optional[_Union[_jobs_pb2.JobMessage, _Mapping]] = ...) -> None: ...

class Hello(_message.Message):
    __slots__ = ("header", "top", "boot")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    TOP_FIELD_NUMBER: _ClassVar[int]
    BOOT_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    top: bool
    boot: int
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., top: bool = ..., boot: _Optional[int] = ...) -> None: ...

class Model(_message.Message):
    __slots__ = ("header", "version", "schema", "subspace", "limits", "counts", "nodes", "staleness_p50_s", "staleness_p99_s", "staleness_max_s", "created_s", "expires_s", "linear", "maxima", "factors", "rank", "widened", "block_s", "epsilon", "told")
    HEADER_FIELD_NUMBER: _ClassVar[int]
    VERSION_FIELD_NUMBER: _ClassVar[int]
    SCHEMA_FIELD_NUMBER: _ClassVar[int]
    SUBSPACE_FIELD_NUMBER: _ClassVar[int]
    LIMITS_FIELD_NUMBER: _ClassVar[int]
    COUNTS_FIELD_NUMBER: _ClassVar[int]
    NODES_FIELD_NUMBER: _ClassVar[int]
    STALENESS_P50_S_FIELD_NUMBER: _ClassVar[int]
    STALENESS_P99_S_FIELD_NUMBER: _ClassVar[int]
    STALENESS_MAX_S_FIELD_NUMBER: _ClassVar[int]
    CREATED_S_FIELD_NUMBER: _ClassVar[int]
    EXPIRES_S_FIELD_NUMBER: _ClassVar[int]
    LINEAR_FIELD_NUMBER: _ClassVar[int]
    MAXIMA_FIELD_NUMBER: _ClassVar[int]
    FACTORS_FIELD_NUMBER: _ClassVar[int]
    RANK_FIELD_NUMBER: _ClassVar[int]
    WIDENED_FIELD_NUMBER: _ClassVar[int]
    BLOCK_S_FIELD_NUMBER: _ClassVar[int]
    EPSILON_FIELD_NUMBER: _ClassVar[int]
    TOLD_FIELD_NUMBER: _ClassVar[int]
    header: _header_pb2.Header
    version: int
    schema: bytes
    subspace: _summary_pb2.Subspace
    limits: _summary_pb2.Limits
    counts: _summary_pb2.Counts
    nodes: int
    staleness_p50_s: float
    staleness_p99_s: float
    staleness_max_s: float
    created_s: float
    expires_s: float
    linear: _summary_pb2.Subspace
    maxima: _summary_pb2.BlockMaxima
    factors: _containers.RepeatedCompositeFieldContainer[_summary_pb2.Factors]
    rank: int
    widened: float
    block_s: float
    epsilon: float
    told: Told
    def __init__(self, header: _Optional[_Union[_header_pb2.Header, _Mapping]] = ..., version: _Optional[int] = ..., schema: _Optional[bytes] = ..., subspace: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ..., limits: _Optional[_Union[_summary_pb2.Limits, _Mapping]] = ..., counts: _Optional[_Union[_summary_pb2.Counts, _Mapping]] = ..., nodes: _Optional[int] = ..., staleness_p50_s: _Optional[float] = ..., staleness_p99_s: _Optional[float] = ..., staleness_max_s: _Optional[float] = ..., created_s: _Optional[float] = ..., expires_s: _Optional[float] = ..., linear: _Optional[_Union[_summary_pb2.Subspace, _Mapping]] = ..., maxima: _Optional[_Union[_summary_pb2.BlockMaxima, _Mapping]] = ..., factors: _Optional[_Iterable[_Union[_summary_pb2.Factors, _Mapping]]] = ..., rank: _Optional[int] = ..., widened: _Optional[float] = ..., block_s: _Optional[float] = ..., epsilon: _Optional[float] = ..., told: _Optional[_Union[Told, _Mapping]] = ...) -> None: ...

class Told(_message.Message):
    __slots__ = ("releases", "committed")
    RELEASES_FIELD_NUMBER: _ClassVar[int]
    COMMITTED_FIELD_NUMBER: _ClassVar[int]
    releases: int
    committed: float
    def __init__(self, releases: _Optional[int] = ..., committed: _Optional[float] = ...) -> None: ...
