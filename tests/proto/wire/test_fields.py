"""form(): a message is written and read by parts, and nothing that is needed is left out."""

from __future__ import annotations

from typing import NamedTuple

import pytest

from submerge import PeerError
from submerge.protocol.alarm_status import Alarm
from submerge.protocol.desired_state import DesiredState
from submerge_proto.v1 import kept_pb2 as pb
from submerge_proto.wire import alarms, parts
from submerge_proto.wire.fields import form, whole


class Both(NamedTuple):
    value: int | None


NEEDED = form(pb.Number, Both, value=whole("n", 9))


def test_a_number_comes_back_or_is_refused():
    """By the reader, not by the writer."""
    assert Both(7) == NEEDED.read(NEEDED.made(Both(7)))
    with pytest.raises(PeerError, match="n must be at most 9, got 10"):
        NEEDED.read(NEEDED.made(Both(10)))


@pytest.mark.parametrize(
    ("part", "value"),
    [
        (parts.COUNTS, type("Counts", (), dict.fromkeys(("learnt", "withheld", "lost", "moved")))),
        (alarms.DESIRED_STATE, DesiredState("n", None)),
        (alarms.ALARM, Alarm("n", 1, 1.0, 1.0, None, 2.0, None, (), 1)),
    ],
)
def test_what_is_needed_and_is_none_is_an_error_of_the_sender(part, value):
    """Else the peer would read a default, and believe it."""
    with pytest.raises((TypeError, KeyError)):
        part.made(value)
