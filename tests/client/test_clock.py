"""Whether the wall clock is synchronised."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace

import pytest

from submerge_client import clock


@pytest.mark.parametrize(("state", "synced"), [(0, True), (1, True), (5, False), (-1, False)])
def test_the_kernel_is_believed_and_a_forbidden_call_counts_as_not_synchronised(
    monkeypatch, state, synced
):
    """0 to 4 are clocks in step, 5 is none; a seccomp filter answers -1."""
    kernel = SimpleNamespace(adjtimex=lambda _: state)
    monkeypatch.setattr(ctypes, "CDLL", lambda _: kernel)

    assert synced is clock._is_synced()


def test_without_the_call_the_clock_counts_as_synchronised(monkeypatch):
    """Not every system has the call."""
    monkeypatch.setattr(ctypes, "CDLL", lambda _: SimpleNamespace())

    assert clock._is_synced()
