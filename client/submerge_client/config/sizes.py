"""The size of the largest report and model, known before the first is built.

A broker does not report that it refuses a message: reports that could not pass are refused first.
"""

from __future__ import annotations

from typing import NamedTuple

from submerge.pca.whole_scatter import is_narrow
from submerge.protocol.alarm_status import MOST_ALARMS, REMEMBERED
from submerge.stats.quantile_sketch import FINE
from submerge_client.config.sections import Key, refusal

MQTT_LIMIT = 120 * 1024  # Bytes of a message over MQTT: AWS IoT stops at 128 KB.
GRPC_LIMIT = 4 * 1024 * 1024  # bytes of a message over gRPC: its own default

ENVELOPE = 256
"""Bytes of a report beside subspace and scores: names, incarnations, counts, fingerprint."""

SKETCHES = 600
"""Bytes for scores: three sketches of 16 buckets, 98 bytes each while counts are below 2^28, and
never above 178. The rest is room for names of 64 letters."""

MAXIMA = 5 * FINE.bytes
"""Block maxima of scores: off the subspace, within it, of single channels, the moving average of
distances, and one more of an earlier version."""

ALARM = 512
"""A name of 64 letters, and three channels of 100 bytes: 481. What else an alarm says is left out
where it would be more (`wire.alarms.MOST_BYTES`). The rest of nine of them is room for the other
alarm fields."""

TRAIL = 48  # a trail of scores: 32 levels, its last minute and their tags, 43

SCORES = SKETCHES + MAXIMA + TRAIL + (1 + REMEMBERED) * ALARM
"""Scores, block maxima, a trail and alarms."""

BELOW = 300 + (MOST_ALARMS - 1 - REMEMBERED) * ALARM
"""Further bytes of an aggregator's report: a fence, a census, sums and alarms of many nodes."""

LINEAR = 256 + FINE.bytes
"""Further bytes of a kernel group's report beside its second subspace: lengths, a fourth sketch
of scores, and a sixth of block maxima."""

SAMPLE = 1536  # 64 readings, each with 8 bytes of priority and 16 of points; they go with moments
JOIN = 512  # bytes of a join beside its schema's text: names of 64 letters, there and in its topic
FENCES = 64 * 32  # further bytes of an aggregator's join: the fences of earlier starts


class Linear(NamedTuple):
    """A kernel group's second subspace, of scaled readings: channels times lags, and columns."""

    width: int
    k: int


def size_of_report(dim: int, k: int, *, merged: bool = False, linear: Linear | None = None) -> int:
    """Return the largest size of a report, in bytes: 4 dim k + 16 dim + 8 k + 256 + scores."""
    beside = ENVELOPE + SCORES + BELOW * merged
    if linear is None:
        # A narrow group sends this in place of columns, but an earlier parent gets columns.
        whole = 2 * dim * (dim + 1) if is_narrow(dim, k) else 0
        # Moments, sent before the scaling is known, take 16 dim: as much as two columns.
        return max(4 * dim * max(k, 2), whole) + 8 * (2 * dim + k) + beside
    both = _columns(dim, k) + _columns(*linear)
    # Before scaling and gamma are known, moments of the readings are sent.
    return max(both, 16 * linear.width + SAMPLE) + LINEAR + beside


def size_of_model(dim: int, k: int, text: int, *, linear: Linear | None = None) -> int:
    """Return the largest size of a model: a client's report, the text, and 4 dim of noise."""
    # Loadings take the place of the scatter, and of alarms (`submerge.pca.factor.columns_apart`).
    width = 0 if linear is None else linear.width
    return size_of_report(dim, k, linear=linear) + text + 4 * (dim + width)


def _columns(dim: int, k: int) -> int:
    """Return the bytes of k columns, their sigma, a mean, and energies of channels."""
    return 4 * dim * k + 8 * (2 * dim + k)


def check_size(
    dim: int,
    k: int,
    limit: int,
    *,
    at: tuple[Key, ...],
    lower: str,  # settings that help
    text: int = 0,  # of a model; a report has none
    merged: bool = False,
    linear: Linear | None = None,
) -> None:
    """Refuse a configuration whose largest message is above a limit, in bytes: BadSetting."""
    k = min(k, dim)
    if linear is not None:
        linear = Linear(linear.width, min(linear.k, linear.width))
    size = size_of_report(dim, k, merged=merged, linear=linear)
    if text:
        size = size_of_model(dim, k, text, linear=linear)
    if size > limit:
        raise refusal(
            *at,
            expected=f"room for {size} bytes: {_terms(dim, k, linear, size)}",
            got=f"a limit of {limit} bytes",
            hint=f"lower {lower}",
        )


def check_join(
    text: int, limit: int, *, at: tuple[Key, ...], lower: str, merged: bool = False
) -> None:
    """Refuse a configuration whose join, with the schema's text, is above a limit."""
    beside = JOIN + FENCES * merged
    if text + beside > limit:
        raise refusal(
            *at,
            expected=f"room for {text + beside} bytes: to join, a schema of {text}, and {beside}",
            got=f"a limit of {limit} bytes",
            hint=f"lower {lower}",
        )


def _terms(dim: int, k: int, linear: Linear | None, size: int) -> str:
    if linear is None:
        whole = 2 * dim * (dim + 1) > 4 * dim * max(k, 2) and is_narrow(dim, k)
        more = size - size_of_report(dim, k) + ENVELOPE + SCORES
        return (
            f"dim {dim} (channels x lags), k {k} (rank + oversample),"
            f" {'2 dim (dim + 1)' if whole else '4 dim k'} + 16 dim + 8 k + {more}"
        )
    width, columns = linear
    more = size - _columns(dim, k) - _columns(width, columns)
    return (
        f"dim {dim} (features), k {k} (rank + oversample), width {width} (channels x lags),"
        f" l {columns} (linear_rank + oversample), 4 dim k + 16 dim + 8 k + 4 width l"
        f" + 16 width + 8 l + {more}"
    )
