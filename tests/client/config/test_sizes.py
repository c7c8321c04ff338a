"""What the largest report weighs: of a kernel group, whose summary is two subspaces."""

from __future__ import annotations

import pytest

from submerge.protocol.alarm_status import MOST_ALARMS, REMEMBERED
from submerge.protocol.messages import Incarnation, Join, Left, Stamp
from submerge.stats.quantile_sketch import FINE
from submerge_client.config.sections import BadSetting
from submerge_client.config.sizes import (
    ALARM,
    FENCES,
    JOIN,
    MQTT_LIMIT,
    SAMPLE,
    TRAIL,
    Linear,
    check_join,
    check_size,
    size_of_report,
)
from submerge_client.uplink.broker import overhead
from submerge_proto.wire import codec, topics

AT = ("uplink", "max_message_bytes")


def test_a_kernel_groups_report_is_two_subspaces():
    """As much again as of a linear group, of the readings: and what else there is."""
    alone, beside = size_of_report(512, 21), Linear(48, 13)  # 512 features are not narrow

    assert (
        4 * 48 * 13 + 16 * 48 + 8 * 13 + 256 + FINE.bytes
        == size_of_report(512, 21, linear=beside) - alone
    )
    assert 300 + 55 * ALARM == size_of_report(512, 21, linear=beside, merged=True) - size_of_report(
        512, 21, linear=beside
    )


@pytest.mark.parametrize("dim", range(1, 70))
def test_the_larger_form_of_a_summary_counts(dim):
    """Columns, moments, or the whole scatter, which goes where it is at most twice the columns."""
    k = min(13, dim)
    columns, whole = 4 * dim * k, 4 * (dim * (dim + 1) // 2)
    wanted = max(columns, 8 * dim, whole if whole <= 2 * columns else 0)

    assert wanted + 16 * dim + 8 * k == size_of_report(dim, k) - 15_122


def test_a_narrow_groups_report_over_the_limit_is_refused_with_its_terms():
    """51 channels at 13 directions: the scatter is 5304 bytes, the columns would be 2652."""
    with pytest.raises(BadSetting, match=r"2 dim \(dim \+ 1\) \+ 16 dim \+ 8 k \+ 15122, got"):
        check_size(51, 13, 1000, at=AT, lower="rank")

    with pytest.raises(BadSetting, match=r" 4 dim k \+ 16 dim \+ 8 k \+ 15122, got"):
        check_size(52, 13, 1000, at=AT, lower="rank")


def test_alarms_are_reckoned_with():
    """Nine of a client, 64 of an aggregator; what they are judged by, in five sketches; a trail."""
    assert 256 + 600 + 5 * FINE.bytes + TRAIL + 9 * ALARM == size_of_report(1, 1) - 8 - 24
    assert (1 + REMEMBERED, MOST_ALARMS) == (9, 64)


def test_while_gamma_is_open_moments_and_a_sample_go():
    """Of few directions they are more than the summary will be."""
    size = size_of_report(16, 1, linear=Linear(100, 1))

    assert 16 * 100 + SAMPLE + 256 + FINE.bytes + 15_122 == size


def test_a_kernel_groups_report_over_the_limit_is_refused_with_the_numbers():
    """Both dimensions, both numbers of columns, bytes and limit; and what to lower."""
    with pytest.raises(BadSetting) as caught:
        check_size(
            2048,
            21,
            MQTT_LIMIT,
            at=AT,
            lower="schema.features.features",
            linear=Linear(48, 13),
            text=100,
        )

    size = 4 * 2048 * 21 + 16 * 2048 + 8 * 21 + 4 * 48 * 13 + 16 * 48 + 8 * 13 + 17_300 + 100
    size += 4 * (2048 + 48)
    assert (
        f"uplink.max_message_bytes: expected room for {size} bytes: dim 2048 (features), k 21"
        " (rank + oversample), width 48 (channels x lags), l 13 (linear_rank + oversample),"
        " 4 dim k + 16 dim + 8 k + 4 width l + 16 width + 8 l + 25784, got a limit of 122880 bytes;"
        " lower schema.features.features"
    ) == str(caught.value)


def test_columns_beyond_the_channels_weigh_nothing():
    """There are never more than channels, nor more than features."""
    limit = size_of_report(16, 16, linear=Linear(4, 4))
    check_size(16, 1000, limit, at=AT, lower="rank", linear=Linear(4, 1000))

    with pytest.raises(BadSetting, match=r"k 16 .*, l 4 "):
        check_size(16, 1000, limit - 1, at=AT, lower="rank", linear=Linear(4, 1000))


@pytest.mark.parametrize("merged", [False, True])
def test_no_join_is_larger_than_was_reckoned(merged):
    """Its topic, names of 64 letters and 64 starts before this one included."""
    name, text = "n" * 64, b"x" * 5000
    past = tuple(Left(bytes([i]) * 16, 2**62) for i in range(64)) if merged else ()
    stamp = Stamp(name, name, Incarnation(2**50, 2**63 - 1), 2**62)
    data = codec.encode(Join(stamp, b"f" * 16 if merged else b"", past, text))

    size = len(data) + overhead(topics.up(name, name, name, "join", name))
    check_join(len(text), len(text) + JOIN + FENCES * merged, at=AT, lower="", merged=merged)
    assert size <= len(text) + JOIN + FENCES * merged
    with pytest.raises(BadSetting, match=r"to join, a schema of 5000, and"):
        check_join(len(text), size - 1, at=AT, lower="it", merged=merged)
