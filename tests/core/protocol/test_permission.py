"""What a certificate allows, and the name under which an aggregator is checked."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge.errors import UsageError
from submerge.protocol.messages import Counts, Incarnation, Join, Report, Stamp
from submerge.protocol.names import NAME, server_name
from submerge.protocol.permission import ROLES, Permission, Role

NAMES = st.from_regex(NAME, fullmatch=True)
LABEL = re.compile(r"[a-z0-9-]{1,63}")
STAMP = Stamp("pump-1", "room", Incarnation(1, 1), 1)
FENCE = b"\1" * 16


def _join(fence: bytes = b"") -> Join:
    return Join(STAMP, fence, (), b"")


def _report(fence: bytes = b"") -> Report:
    return Report(
        STAMP,
        final=False,
        pinned=Incarnation(1, 1),
        fence=fence,
        fingerprint="",
        summary=None,
        moments=None,
        counts=Counts(),
        as_of=0.0,
        synced=False,
        version=0,
        lifetime=0,
    )


@given(st.sampled_from(ROLES), st.lists(NAMES, unique=True, max_size=4))
def test_it_is_read_as_it_was_written_among_other_names(role: Role, groups: list[str]):
    allowed = Permission(role, tuple(groups))
    assert allowed == Permission.of(["spiffe://plant/pump", *allowed.uris, "urn:uuid:1"])


def test_a_certificate_without_a_role_says_nothing():
    assert Permission.of(["spiffe://plant/pump"]) is None
    assert Permission.of([]) is None


@pytest.mark.parametrize(
    "uris",
    [
        ["submerge:role=admin"],
        ["submerge:role="],
        ["submerge:role=client", "submerge:role=aggregator"],
        ["submerge:group=room"],
        ["submerge:role=client", "submerge:group=a/b"],
        ["submerge:role=client", "submerge:group="],
    ],
)
def test_a_role_that_cannot_be_meant_is_refused(uris):
    with pytest.raises(UsageError):
        Permission.of(uris)


@pytest.mark.parametrize(
    ("role", "fence", "allowed"),
    [
        ("client", b"", True),
        ("client", FENCE, False),
        ("aggregator", b"", False),
        ("aggregator", FENCE, True),
        ("reader", b"", False),
        ("operator", FENCE, False),
    ],
)
def test_a_fence_is_an_aggregators_alone(role: Role, fence: bytes, allowed: bool):
    for message in (_join(fence), _report(fence)):
        assert allowed == (Permission(role).objection(message) is None)


def test_groups_are_kept_apart():
    for message in (_join(), _report()):
        assert Permission("client", ("hall", "room")).objection(message) is None
        refused = Permission("client", ("hall",)).objection(message)
        assert refused == "its groups are hall, got room: correct one of them"
    assert Permission("reader", ("hall",)).objection_to("hall") is None
    assert Permission("reader", ("hall",)).objection_to("room") is not None


@given(NAMES, NAMES)
def test_names_of_servers_are_dns_names_and_never_shared(one: str, other: str):
    for node in (one, other):
        labels = server_name(node).split(".")
        assert len(server_name(node)) <= 253
        assert all(LABEL.fullmatch(label) for label in labels)
        assert labels[-2:] == ["submerge", "invalid"]
    assert (server_name(one) == server_name(other)) == (one == other)


def test_most_names_stay_readable():
    assert server_name("root") == "root.submerge.invalid"
    assert server_name("Root") != server_name("root")
    assert server_name("x--a") != server_name("x--b")
