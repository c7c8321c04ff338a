"""Questions as bytes: steps of time arrive as they were sent, and odd ones are refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError
from submerge.protocol.messages import MOST_STEP_S, Incarnation, Question
from submerge_proto.v1 import aggregator_service_pb2 as pb
from submerge_proto.wire import codec
from support.edges import names

ASKED = Question("a", "g", Incarnation(1, 2), 7, ("b", "c"), "scores", "n", "m")


@given(
    node=names,
    since_s=st.integers(0, 2**62),
    step_s=st.integers(0, MOST_STEP_S),
    after=st.just("") | names,
)
def test_a_question_arrives_as_it_was_asked(
    node: str, since_s: int, step_s: int, after: str
) -> None:
    """With its steps, too; a topic without any has zeros."""
    asked = ASKED._replace(node=node, since_s=since_s, step_s=step_s, after=after)

    assert asked == codec.decode("question", codec.encode(asked))
    assert b"" == pb.Question(since_s=0, step_s=0).SerializeToString()


@pytest.mark.parametrize("odd", [{"since_s": 2**63}, {"step_s": MOST_STEP_S + 1}])
def test_odd_steps_are_refused(odd: dict[str, int]) -> None:
    """What no aggregator asks for is refused at the border, with its kind."""
    message = pb.Question.FromString(codec.encode(ASKED))
    for name, value in odd.items():
        setattr(message, name, value)

    with pytest.raises(PeerError) as refused:
        codec.decode("question", message.SerializeToString())
    assert "range" == refused.value.kind
