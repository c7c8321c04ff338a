"""Handshakes that come to nothing, counted apart from those that a call follows."""

from __future__ import annotations

from submerge_aggregator.downlink.over_grpc import LIFE_S, MOST_KNOWN, PATIENCE_S, Handshakes

LATER = PATIENCE_S + 1.0


def test_one_that_no_call_follows_is_counted_once():
    """When its time is over, and not before."""
    handshakes = Handshakes()

    assert [0, 0, 2, 0] == [
        handshakes.take_failed(2, at) for at in (0.0, PATIENCE_S - 1, LATER, 1e6)
    ]


def test_a_call_of_a_new_connection_uses_up_a_handshake():
    """Its other calls use up none."""
    handshakes = Handshakes()
    handshakes.note_call("c", 2, 0.0)
    handshakes.note_call("c", 2, 1.0)

    assert 1 == handshakes.take_failed(2, LATER)


def test_among_many_that_are_fine_the_others_are_counted_in_time():
    """A call takes the newest: one in ten here is nothing, though calls come all the time."""
    handshakes, vain, begun = Handshakes(), 0, 0
    for second in range(100):
        begun += 10
        vain += handshakes.take_failed(begun, float(second))
        for number in range(9):
            handshakes.note_call(f"{second}:{number}", begun, second + 0.1)

    assert 100 - PATIENCE_S == vain


def test_a_number_that_is_used_again_is_a_new_connection():
    """When the last stream of the old one has ended, or its hour must be over."""
    handshakes = Handshakes()
    handshakes.note_call("c", 1, 0.0)
    for _ in range(2):
        handshakes.note_stream("c")
    handshakes.note_stream_end("c")
    handshakes.note_call("c", 2, 1.0)
    assert 1 == handshakes.take_failed(2, LATER + 1.0)

    handshakes.note_stream_end("c")
    handshakes.note_call("c", 3, LATER + 2.0)
    handshakes.note_call("c", 4, LATER + 2.0 + LIFE_S)
    assert 0 == handshakes.take_failed(4, 1e6)


def test_what_is_remembered_is_bounded():
    """However many connections there were."""
    handshakes = Handshakes()
    for number in range(MOST_KNOWN + 100):
        handshakes.note_call(f"{number}", number + 1, 0.0)

    assert MOST_KNOWN == len(handshakes._known)
    assert [] == handshakes._open
