"""The size of the largest message that a child of some groups may send, and what is within it."""

from __future__ import annotations

from collections.abc import Iterable

from submerge import Schema
from submerge.protocol.messages import Report
from submerge.protocol.summaries import MOST_TIMES
from submerge_client.config.schemas import SchemaConfig
from submerge_client.config.sizes import FENCES, JOIN, Linear, size_of_report
from submerge_client.config.summary import SummaryConfig
from submerge_proto.wire import codec

UNKNOWN = 256 * 1024
"""Bytes of a message while the schema of a group comes from the parent."""

LEAST = 64 * 1024
"""Bytes that always fit: a child with a wrong configuration then gets an answer, with reasons."""


def largest_message(groups: Iterable[tuple[SummaryConfig, SchemaConfig | None]], most: int) -> int:
    """Return the bytes of the largest message that may come from below.

    It is the largest report of an aggregator, with `MOST_TIMES` the directions that its group
    keeps (so many are merged), and the text of its schema, which a join carries. An eighth is
    added, for fields of later versions.

    groups : None: the schema comes from the parent.
    most : Bytes that the transport's peers send by default; the result is never above.
    """
    largest = LEAST
    for summary, schema in groups:
        if schema is None:
            size = UNKNOWN
        else:
            linear = summary.linear(schema)
            if linear is not None:
                width, k = linear
                linear = Linear(width, min(MOST_TIMES * k, width))
            k = min(MOST_TIMES * summary.kept, schema.dim)
            size = size_of_report(schema.dim, k, merged=True, linear=linear) + JOIN + FENCES
            # The text is built only where it can fit: landmarks make it long.
            if size < most:
                size += schema.text_bytes
            size += size // 8
        largest = max(largest, size)
    return min(largest, most)


def has_room(report: Report, schema: Schema, *, kept: int) -> bool:
    """Return whether a report is no larger than the largest that an aggregator may send.

    For that one parents have room, and links: configurations are checked for it. Of a schema with
    more channels before, sums may be larger.

    schema : the present one, of a group without a kernel
    kept : directions that the group keeps

    Cost: one encoding. It is asked only of reports with sums under an earlier schema.
    """
    most = size_of_report(schema.dim, min(kept, schema.dim), merged=True)
    return len(codec.encode(report)) <= most
