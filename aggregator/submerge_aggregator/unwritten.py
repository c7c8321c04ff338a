"""What is answered while the store cannot be written: "not now" to all who wait for an answer."""

from __future__ import annotations

from collections.abc import Sequence

from submerge import SubmergeError
from submerge.protocol.messages import (
    Answer,
    DrillReport,
    DrillTaken,
    Join,
    Joined,
    QuestionReply,
    Reason,
    ReplyTaken,
    Report,
)
from submerge_aggregator.batch import Asked, Item, Out, Refuse, Reply, answer_to
from submerge_aggregator.downlink import Inbound
from submerge_aggregator.refusals import Refusals
from submerge_proto.wire import codec


def refuse_all(items: Sequence[Item], refusals: Refusals) -> list[Out]:
    """Answer "not now" to those items that want an answer."""
    return [out for item in items for out in _not_now(item, refusals)]


def _not_now(item: Item, refusals: Refusals) -> list[Out]:
    if isinstance(item, Asked):
        return [Reply(item, SubmergeError("the store cannot be written now"))]
    if not isinstance(item, Inbound):
        return []
    try:
        message = codec.decode(item.kind, item.data)
    except Exception as error:  # of any kind: this may be the bug itself
        return [Refuse(item, str(error))]
    if isinstance(message, Join | Report):
        refusals.count("unavailable", message.stamp.node)
    match message:
        case Join(stamp, fence):
            late = Joined(stamp, Reason.UNAVAILABLE, fence, None, False, 0, b"")
            return [answer_to(item, late)]
        case Report():
            answer = Answer(message.stamp, Reason.UNAVAILABLE, message.fence)
            return [answer_to(item, answer)]
        case DrillReport():
            return [answer_to(item, DrillTaken(message.stamp, Reason.UNAVAILABLE))]
        case QuestionReply():
            return [answer_to(item, ReplyTaken(message.stamp, Reason.UNAVAILABLE))]
    return []
