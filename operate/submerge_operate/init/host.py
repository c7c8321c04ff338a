"""propose_host(): this machine's own figures, in scales that need no measuring."""

from __future__ import annotations

from submerge import UsageError
from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.sensors import needs_extra
from submerge_client.sensors.host import USUAL
from submerge_operate.init.proposal import FoundChannel, Proposal

PERIOD_S = 1.0

RANK = 2
"""Directions of the first model: it is made after ten rows for each."""

SENSOR = """\
# This machine's own figures, every `period_s` seconds.
[sensor]
kind = "host"
period_s = 1.0
"""

SCALES = """\
# A reading counts in units of its `scale`: ten percent of the processor are as much as a MB/s of
# network. With known scales nothing needs to be measured before it learns."""

SUMMARY = f"""\
# The most directions of normal variation. Few channels need few, and the first model comes after
# ten rows for each.
rank_max = {RANK}
"""


def propose_host() -> Proposal:
    """Return the channels that this host has of `USUAL`."""
    with needs_extra("psutil", "host"):
        import psutil

        from submerge_client.sensors.host import channel_names
    here = set(channel_names())
    if not psutil.swap_memory().total:
        here.discard("swap.percent")
    usual = [each for each in USUAL if each.name in here]
    if not usual:
        raise UsageError(
            "expected figures of this machine, got none that can be read: see what"
            " keeps psutil from /proc, or name another source with --from"
        )
    channels = tuple(
        ChannelConfig(name=each.name, unit=each.unit, offset=0.0, scale=each.scale)
        for each in usual
    )
    return Proposal(
        source="its own load, memory, disk and network",
        sensor=SENSOR,
        schema=SchemaConfig(channels=channels, scaling="fixed"),
        schema_note=SCALES,
        summary=SUMMARY,
        found=tuple(FoundChannel(each.name, each.unit, PERIOD_S) for each in usual),
    )
