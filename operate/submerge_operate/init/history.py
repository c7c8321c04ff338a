"""propose_history(): what recorded readings, or a model of them, settle."""

from __future__ import annotations

from pathlib import Path

from submerge_client.config.from_history import LearntSettings
from submerge_operate.init.proposal import FoundChannel, Proposal

SENSOR = """\
# Where readings come from: a line of JSON on standard input for each row, with null for a gap.
#     {{{example}: 21.5, ...}}
# Or a program of yours that prints them: kind = "program", command = ["its name", "arguments"].
[sensor]
kind = "ndjson"
"""

SCALES = """\
# Channels and scales are those of {source}. A reading counts as (reading - offset) / scale."""

SUMMARY = """\
# Directions of normal variation, as the history has them.
rank = {rank}
"""


def propose_history(path: Path) -> Proposal:
    """Return the channels, scales and rank of recorded readings.

    Raises
    ------
    UsageError
        If they cannot be read or learnt.
    """
    from submerge_client.config.toml_text import quoted

    learnt = _learnt(path)
    schema, rank = learnt.schema, learnt.summary.rank
    source = "".join(each if each.isprintable() else "?" for each in learnt.source)
    period = learnt.period_s or None
    return Proposal(
        source=f"channels as in {source}",
        sensor=SENSOR.format(example=quoted(schema.tables[0].name)),
        schema=schema,
        schema_note=SCALES.format(source=source),
        summary="" if rank == "auto" else SUMMARY.format(rank=rank),
        found=tuple(FoundChannel(each.name, each.unit, period) for each in schema.tables),
        remarks=("Its live readings come on standard input: a line of JSON for each row.",),
        pipe="your-program",
    )


def _learnt(path: Path) -> LearntSettings:
    from submerge_files.fit.learnt_settings import learnt_settings

    return learnt_settings(path)
