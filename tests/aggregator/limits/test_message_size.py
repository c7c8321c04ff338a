"""The limit on a message follows from the groups; no honest message is over it."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from submerge.protocol.summaries import MOST_TIMES
from submerge_aggregator.limits.message_size import LEAST, UNKNOWN, largest_message
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sizes import FENCES, GRPC_LIMIT, JOIN, MQTT_LIMIT, size_of_report
from submerge_client.config.summary import SummaryConfig


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
