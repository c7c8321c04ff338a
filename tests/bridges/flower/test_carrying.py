"""What is refused of a record that has come through Flower."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import PeerError
from submerge_bridges.flower import carrying
from submerge_bridges.flower.carrying import MOST, ParcelMessage, parcel_of, values_of
from submerge_proto.wire.codec import KINDS

parcels = st.lists(
    st.builds(ParcelMessage, st.sampled_from(KINDS), st.binary(max_size=9)), max_size=5
)


@given(parcels.map(tuple))
def test_a_parcel_arrives_as_it_left(parcel: Any) -> None:
    """The values of a record hold all messages, in order."""
    assert parcel == parcel_of(values_of(parcel))


@pytest.mark.parametrize(
    "values",
    [
        {"kinds": "join", "messages": [b""]},
        {"kinds": ["join"], "messages": []},
        {"kinds": ["gossip"], "messages": [b""]},
        {"kinds": ["join"], "messages": ["text"]},
        {"kinds": [7], "messages": [b""]},
        {"kinds": ["join"] * (MOST + 1), "messages": [b""] * (MOST + 1)},
    ],
    ids=["no list", "one without", "unknown kind", "no bytes", "no kind", "too many"],
)
def test_what_is_no_parcel_is_refused(values: dict[str, Any]) -> None:
    """A record of another form is one line, whatever it holds."""
    with pytest.raises(PeerError, match="expected"):
        parcel_of(values)


def test_a_message_above_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message may have as many bytes as over gRPC, and no more."""
    monkeypatch.setattr(carrying, "MOST_BYTES", 8)

    assert 1 == len(parcel_of({"kinds": ["report"], "messages": [bytes(8)]}))
    with pytest.raises(PeerError, match="at most 8 bytes, got 9"):
        parcel_of({"kinds": ["report"], "messages": [bytes(9)]})
