"""What the largest report weighs, known before the first is built.

A broker that refuses a message does not say so to whoever sent it: a configuration whose
reports could not pass is refused at the start, with the numbers.
"""

from __future__ import annotations

from submerge_client.sections import Key, refusal

MQTT_LIMIT = 120 * 1024
"""Bytes of a message over MQTT: AWS IoT stops at 128 KB."""

GRPC_LIMIT = 4 * 1024 * 1024
"""Bytes of a message over gRPC: its own default."""

ENVELOPE = 256
"""Bytes of a report beside subspace and scores: names, incarnations, counts, fingerprint."""

SCORES = 400
"""Bytes that scores are allowed: two sketches of 16 buckets, 98 bytes each while counts are
below 2^28, and never above 178. What they leave is room for names of 64 letters."""

BELOW = 300
"""What an aggregator's report has beside: a fence, a census, and sums of many."""


def size_of_report(dim: int, k: int, *, merged: bool = False) -> int:
    """Return what a report weighs at most, in bytes: 4 dim k + 8 (dim + k) + 256 + scores.

    Parameters
    ----------
    dim : int
        Features: channels, times lags.
    k : int
        Columns, spare ones included. Counted as float32: how many of them can be coarser, the
        data decide.
    merged : bool
        It is an aggregator's: that has more to say.
    """
    # Moments, which go before the scaling is known, are 16 dim: as much as two columns.
    return 4 * dim * max(k, 2) + 8 * (dim + k) + ENVELOPE + SCORES + BELOW * merged


def check_size(
    dim: int,
    k: int,
    limit: int,
    *,
    at: tuple[Key, ...],
    lower: str,
    text: int = 0,
    merged: bool = False,
) -> None:
    """Refuse a configuration whose largest message is above a limit.

    Parameters
    ----------
    dim, k : int
        Features; columns, spare ones included, of which there are never more than dim.
    limit : int
        In bytes.
    at : tuple of Key
        The setting that says what the limit is.
    lower : str
        What else can be changed.
    text : int
        Bytes that go with it: a model carries its schema.
    merged : bool
        It is an aggregator's report.

    Raises
    ------
    BadSetting
        With the numbers.
    """
    k = min(k, dim)
    size = size_of_report(dim, k, merged=merged) + text
    more = size - size_of_report(dim, k) + ENVELOPE + SCORES
    if size > limit:
        raise refusal(
            *at,
            expected=f"room for {size} bytes: dim {dim} (channels x lags), k {k} (rank +"
            f" oversample), 4 dim k + 8 (dim + k) + {more}",
            got=f"a limit of {limit} bytes",
            mend=f"lower {lower}",
        )
