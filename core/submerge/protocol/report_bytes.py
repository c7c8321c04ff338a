"""What two reports with equal content share, as bytes, and how long it is; the wire is protobuf.

Digests are on disks: content unknown to an earlier version adds bytes only where it is there.
"""

from __future__ import annotations

import hashlib
import struct

from submerge.protocol.messages import Report, learnt_in
from submerge.protocol.summaries import Summaries
from submerge.stats.quantile_sketch import packed, varint

TRAIL = 10  # bytes of a trail beside its levels: its last minute, and tags


def payload(report: Report, summaries: Summaries) -> bytes:
    """Return the content of a report as bytes, without `final`, `pinned`, `fence`, `trail`."""
    stamp, counts = report.stamp, report.counts
    parts = [
        f"{stamp.node}\n{stamp.group}\n".encode(),
        struct.pack("<QQQ", *stamp.incarnation, stamp.seq),
        bytes.fromhex(report.fingerprint),
        *map(varint, (counts.learnt, counts.withheld, counts.lost)),
        *map(varint, (report.version, report.lifetime)),
        varint(counts.moved) if counts.moved else b"",  # digests that are kept stay valid
        struct.pack("<d?", report.as_of, report.synced),
    ]
    if report.summary is not None:
        parts.append(summaries.packed(report.summary))
    if report.moments is not None:
        parts.append(report.moments.packed)
    if report.census is not None:
        parts += map(varint, (report.census.nodes, *report.census.ages))
    left = b"left" + varint(report.left) if report.left else b""
    return b"".join(parts) + scores_bytes(report) + _earlier_bytes(report, summaries) + left


def scores_bytes(report: Report) -> bytes:
    scores, parts = report.scores, list[bytes]()
    if scores is not None:
        sketches = (scores.spe, scores.t2, scores.linear, scores.distance)
        parts += [packed(sketch) for sketch in sketches if sketch is not None]
        if scores.maxima is not None:
            parts.append(scores.maxima.packed)
    if report.alarm_status is not None:
        parts.append(report.alarm_status.packed)
    return b"".join(parts)


def _earlier_bytes(report: Report, summaries: Summaries) -> bytes:
    """Return the sums of a report under an earlier schema as bytes."""
    sums = report.earlier
    if sums is None:
        return b""
    counts = sums.counts
    numbers = map(varint, (counts.learnt, counts.withheld, counts.lost, counts.moved))
    return b"".join((bytes.fromhex(sums.fingerprint), *numbers, summaries.packed(sums.summary)))


def size(report: Report, summaries: Summaries) -> int:
    pieces = [piece for _, summary in learnt_in(report) for piece in summary.pieces]
    # 16 bytes for pinned, the fence, one for final, and what the payload leaves out.
    energies = [each for piece in pieces if (each := piece.channel_energies) is not None]
    rest = 17 + len(report.fence) + sum(each.nbytes for each in energies)
    levels = len(report.trail.levels)
    return len(payload(report, summaries)) + rest + (TRAIL + levels if levels else 0)


def digest(report: Report, summaries: Summaries) -> bytes:
    """Return 16 bytes that two reports share only if their contents are equal."""
    return hashlib.blake2b(payload(report, summaries), digest_size=16).digest()
