"""The limit on a message follows from the groups; no honest message is over it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from submerge import Schema
from submerge.protocol.messages import Counts, EarlierSums
from submerge.protocol.summaries import MOST_TIMES
from submerge_aggregator.config import GroupConfig
from submerge_aggregator.limits import LEAST, UNKNOWN, has_room, largest_message
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sizes import FENCES, GRPC_LIMIT, JOIN, MQTT_LIMIT, size_of_report
from submerge_client.config.summary import SummaryConfig
from submerge_proto.wire import codec
from support.wire import a_report, subspace_of


def group(channels: int, rank: int, *, lags: int = 1) -> tuple[SummaryConfig, SchemaConfig]:
    """Return a group's configuration."""
    names = tuple(f"channel {i}" for i in range(channels))
    return SummaryConfig(rank=rank), SchemaConfig(channels=names, lags=lags, scaling="fleet")


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 4))
def test_every_message_of_a_group_fits(channels, rank, lags):
    """Reports with as many directions as are merged, and joins with the longest text."""
    summary, schema = group(channels, rank, lags=lags)
    limit = largest_message([(summary, schema)], GRPC_LIMIT)

    k = min(MOST_TIMES * summary.kept, schema.dim)
    assert size_of_report(schema.dim, k, merged=True) <= limit
    assert size_of_report(schema.dim, min(summary.kept, schema.dim)) + schema.text_bytes <= limit
    assert schema.text_bytes + JOIN + FENCES <= limit


def test_the_largest_group_counts_and_small_ones_have_a_least_limit():
    """A child with a wrong configuration is told what differs, and not that it says too much."""
    small, large = group(2, 2), group(500, 20)

    assert LEAST == largest_message([small], GRPC_LIMIT)
    assert (
        LEAST < largest_message([large], GRPC_LIMIT) == largest_message([small, large], GRPC_LIMIT)
    )


def test_a_group_whose_schema_comes_from_the_parent_takes_256_kib():
    """Until it is known, nothing better can be said."""
    assert UNKNOWN == largest_message([(SummaryConfig(), None), group(2, 2)], GRPC_LIMIT)
    assert MQTT_LIMIT == largest_message([(SummaryConfig(), None)], MQTT_LIMIT)


def test_what_no_child_sends_by_default_is_over_the_limit():
    """4 MiB over gRPC and 120 KiB over MQTT are the limits of the children themselves."""
    assert GRPC_LIMIT == largest_message([group(20_000, 60)], GRPC_LIMIT)


@pytest.mark.parametrize(("before", "fits"), [(6, True), (40, True), (300, False)])
def test_sums_of_more_channels_go_up_as_far_as_any_report_may(before, fits):
    """The largest report of the present schema is the limit, whatever the group had before."""
    present, earlier = Schema.anonymous(6), Schema.anonymous(before)
    whole = subspace_of(before, [5.0] * min(before, 60), schema=earlier)
    report = a_report(
        fence=b"f" * 16,
        summary=None,
        earlier=EarlierSums(earlier.fingerprint, whole, Counts(40)),
    )

    assert fits == has_room(report, present, kept=15)
    assert fits == (len(codec.encode(report)) <= size_of_report(6, 6, merged=True))


def test_the_plan_of_a_group_asks_for_room():
    """By the directions that it keeps."""
    plan = GroupConfig(summary=SummaryConfig(rank=10)).plan
    assert plan.has_room is not None
    assert plan.has_room(a_report(), Schema.anonymous(6))
