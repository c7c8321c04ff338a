"""Whether anybody vouches for the wall clock."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from submerge_client import clock


@pytest.mark.parametrize(("state", "synced"), [(0, True), (1, True), (5, False), (-1, False)])
def test_the_kernel_is_believed_and_one_that_may_not_be_asked_vouches_for_nothing(
    monkeypatch, state, synced
):
    """0 to 4 are clocks in step, 5 is none; a seccomp filter answers -1."""
    kernel = SimpleNamespace(adjtimex=lambda _: state)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: kernel)

    assert synced is clock._vouched_for()


def test_where_there_is_nobody_to_ask_the_clock_is_taken_as_it_is(monkeypatch):
    """Not every system has the call."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())

    assert clock._vouched_for()
