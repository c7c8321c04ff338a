"""propose(): what a text after `--from` names, and what is there."""

from __future__ import annotations

import glob
import os
import re
import shlex
import shutil
from dataclasses import replace
from pathlib import Path

from submerge import UsageError
from submerge_client.config.from_history import LearntSettings
from submerge_operate.init.mqtt import BrokerOptions, propose_mqtt
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
    """Return the channels, scales and rank of recorded readings."""
    from submerge_client.config.tomlfile import quoted

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


HOST = "host"
URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
ADDRESS = re.compile(r"[\w.-]+:\d{1,5}|\d{1,3}(\.\d{1,3}){3}|localhost|[\w-]+\.(local|lan|home)")
SHELL = {"|", ">", ">>", "<", "&", "&&", "||", ";", "2>&1", "2>/dev/null"}
"""Words that mean something to a shell only."""

RECORDED = re.compile(r"\.(csv|tsv|txt|npy|npz|parquet|feather|arrow|model|log|gz|mat|xlsx)$", re.I)


def propose(source: str, options: BrokerOptions) -> Proposal:
    """Look at a source, and return what a configuration would have."""
    if source == HOST:
        from submerge_operate.init.host import propose_host

        return propose_host()
    if URL.match(source) or ADDRESS.fullmatch(source):
        if not source.startswith(("mqtt://", "mqtts://")):
            raise UsageError(
                f"--from: expected mqtt://broker or mqtts://broker, got {source!r}:"
                f" write mqtt://{URL.sub('', source)}"
            )
        return propose_mqtt(replace(options, url=source))
    if _is_recorded(source):
        return propose_history(Path(source))
    words = _words(source)
    if signs := [word for word in words if word in SHELL]:
        raise UsageError(
            f"--from: expected a program and its arguments, got {signs[0]!r}, which is for a shell:"
            f" write it as {shlex.join(('sh', '-c', source))}, in quotes"
        )
    if not words or shutil.which(words[0]) is None:
        raise UsageError(
            f"--from: expected host, mqtt://broker, recorded readings or a program, got {source!r}:"
            " no file and no program of that name is here"
        )
    from submerge_operate.init.program import propose_program

    return propose_program(words, listen_s=options.listen_s)


def _is_recorded(source: str) -> bool:
    """Return whether a text names files, by its end or because they are there."""
    if RECORDED.search(source) and " " not in source:
        return True
    path = Path(source)
    if path.is_file():
        return not os.access(path, os.X_OK)
    return path.is_dir() or bool(glob.glob(source))


def _words(source: str) -> list[str]:
    try:
        return shlex.split(source)
    except ValueError as error:
        raise UsageError(
            f"--from: expected a program and its arguments, got {source!r}: {error}"
        ) from error
