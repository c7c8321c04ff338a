"""propose(): what a text after `--from` names, and what is there."""

from __future__ import annotations

import glob
import json
import os
import re
import select
import shlex
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import IO

from submerge import UsageError
from submerge_client.config.links import BROKERS
from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.config.tomlfile import quoted
from submerge_client.sensors import needs_extra
from submerge_client.sensors.host import USUAL
from submerge_client.sensors.lines import LineReader
from submerge_client.sensors.mqtt.decoder import MOST_NAMES, Heard, as_number
from submerge_client.sensors.ndjson import CHUNK, TIMES
from submerge_client.sensors.program import Process, begin, check_command, end, has_ended
from submerge_operate.init.mqtt import SCALES as FLEET_SCALES
from submerge_operate.init.mqtt import BrokerOptions, propose_mqtt
from submerge_operate.init.proposal import STATE, FoundChannel, Proposal, choose

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
    from submerge_files.fit.learnt_settings import learnt_settings

    learnt = learnt_settings(path)
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


HOST = "host"
URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
ADDRESS = re.compile(r"[\w.-]+:\d{1,5}|\d{1,3}(\.\d{1,3}){3}|localhost|[\w-]+\.(local|lan|home)")
SHELL = {"|", ">", ">>", "<", "&", "&&", "||", ";", "2>&1", "2>/dev/null"}
"""Words that mean something to a shell only."""

RECORDED = re.compile(r"\.(csv|tsv|txt|npy|npz|parquet|feather|arrow|model|log|gz|mat|xlsx)$", re.I)


def check_source(source: str) -> None:
    """Refuse recorded readings that are not there, before anything else is."""
    if _is_recorded(source) and not URL.match(source) and not glob.glob(source):
        raise UsageError(f"--from: expected a file, got {source!r}: there is nothing of that name")


def propose(source: str, options: BrokerOptions) -> Proposal:
    if source == HOST:
        return propose_host()
    if URL.match(source) or ADDRESS.fullmatch(source):
        if source.partition("://")[0] not in BROKERS:
            raise UsageError(
                f"--from: expected mqtt://, mqtts://, ws:// or wss:// and a broker, got {source!r}:"
                f" write mqtt://{URL.sub('', source)}"
            )
        return propose_mqtt(replace(options, url=source))
    if _is_recorded(source):
        return propose_history(Path(source))
    try:
        words = shlex.split(source)
    except ValueError as error:
        raise UsageError(
            f"--from: expected a program and its arguments, got {source!r}: {error}"
        ) from error
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
    return propose_program(words, listen_s=options.listen_s)


def _is_recorded(source: str) -> bool:
    """Return whether a text names files, by its end or because they are there."""
    if RECORDED.search(source) and " " not in source:
        return True
    path = Path(source)
    if path.is_file():
        return not os.access(path, os.X_OK)
    return path.is_dir() or bool(glob.glob(source))


HOST_PERIOD_S = 1.0

HOST_RANK = 2  # directions of the first model: it is made after ten rows for each

HOST_SENSOR = """\
# This machine's own figures, every `period_s` seconds.
[sensor]
kind = "host"
period_s = 1.0
"""

HOST_SCALES = """\
# A reading counts in units of its `scale`: ten percent of the processor are as much as a MB/s of
# network. With known scales nothing needs to be measured before it learns."""

HOST_SUMMARY = f"""\
# The most directions of normal variation. Few channels need few, and the first model comes after
# ten rows for each.
rank_max = {HOST_RANK}
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
        sensor=HOST_SENSOR,
        schema=SchemaConfig(channels=channels, scaling="fixed"),
        schema_note=HOST_SCALES,
        summary=HOST_SUMMARY,
        found=tuple(FoundChannel(each.name, each.unit, HOST_PERIOD_S) for each in usual),
    )


LISTEN_S = 10.0
LOOK_S = 0.1

PROGRAM_SENSOR = """\
# Where readings come from: a line of JSON for each row of this program, started without a shell.
[sensor]
kind = "program"
command = {command}
"""

NO_NUMBERS = {STATE: "words and booleans: let the program print numbers for them"}


class _Rows:
    """Counts a program's lines, and remembers their numbers and words."""

    def __init__(self) -> None:
        self.heard, self.words = Heard(), dict[str, set[str]]()
        self.rows = self.other = 0

    def take(self, line: bytes | None, now: float) -> None:
        try:
            values = json.loads(line) if line is not None and line.strip() else {}
        except (ValueError, RecursionError):
            values = None
        if isinstance(values, list):
            values = {f"value{i}": value for i, value in enumerate(values, start=1)}
        if not isinstance(values, dict):
            self.other += 1
            return
        self.rows += bool(values)
        for name, value in values.items():
            if name in TIMES or not name or not name.isprintable():
                continue
            if isinstance(value, bool | str):
                if len(self.words) < MOST_NAMES:
                    word = value if isinstance(value, str) else str(value).lower()
                    self.words[name] = {word}
            elif (number := as_number(value, {})) is not None:
                self.heard.add(name, number, now)


def propose_program(command: Sequence[str], *, listen_s: float | None) -> Proposal:
    check_command(command)
    rows = _Rows()
    with tempfile.TemporaryFile() as errors:
        status = _run(command, rows, errors, LISTEN_S if listen_s is None else listen_s)
        choice = choose(rows.heard.fields, {}, {}, rows.words, with_states=False)
        if not choice.found:
            raise _nothing(command, rows, status, errors)
    # A service has another PATH and another folder.
    whole = (os.path.abspath(shutil.which(command[0]) or command[0]), *command[1:])
    remarks = []
    if status is not None:
        remarks.append(f"It ended by itself with status {status}; it is started again then.")
    channels = tuple(ChannelConfig(name=each.name) for each in choice.found)
    return Proposal(
        source=f"the lines of {command[0]}",
        sensor=PROGRAM_SENSOR.format(command=f"[{', '.join(map(quoted, whole))}]"),
        schema=SchemaConfig(channels=channels, scaling="units"),
        schema_note=FLEET_SCALES,
        found=choice.found,
        left_out=tuple(
            replace(each, why=NO_NUMBERS.get(each.why, each.why)) for each in choice.left_out
        ),
        remarks=tuple(remarks),
    )


def _run(command: Sequence[str], rows: _Rows, errors: IO[bytes], listen_s: float) -> int | None:
    """Read a program's lines for a while; return its status, None if it was ended."""
    out, into = os.pipe()
    with os.fdopen(out, "rb", 0) as stream:
        with os.fdopen(into, "wb", 0) as output:
            try:
                process = begin(command, output, errors)
            except OSError as error:
                raise UsageError(
                    f"expected a program that can be run, got {command[0]!r}: {error.strerror}:"
                    " a script needs a first line as #!/usr/bin/env python3"
                ) from error
        try:
            return _read(process, stream, rows, time.monotonic() + listen_s)
        finally:
            end(process)


def _read(process: Process, stream: IO[bytes], rows: _Rows, until: float) -> int | None:
    lines = LineReader()
    while (now := time.monotonic()) < until:
        if not select.select((stream,), (), (), LOOK_S)[0]:
            continue
        chunk = os.read(stream.fileno(), CHUNK)
        for _, line in lines.cut(chunk) if chunk else lines.last():
            rows.take(line, now)
        if not chunk:
            break
    else:
        return None
    # Its output is over: its end is near, but for a program that closed it.
    while not has_ended(process) and time.monotonic() < until:
        time.sleep(LOOK_S)
    return end(process) if has_ended(process) else None


def _nothing(
    command: Sequence[str], rows: _Rows, status: int | None, errors: IO[bytes]
) -> UsageError:
    errors.seek(max(0, errors.seek(0, os.SEEK_END) - CHUNK))
    said = errors.read().decode(errors="replace").strip().splitlines()
    last = f"; it says: {said[-1][:200]}" if said else ""
    ended = "" if status is None else f", and it ended with status {status}"
    if not rows.rows:
        got = f"{rows.other} other lines" if rows.other else "no line"
        hint = 'it must print a line as {"temperature": 21.5} for each row, and flush it'
    else:
        got, hint = f"{rows.rows} lines without numbers that change", "--listen 60 waits longer"
    return UsageError(
        f"expected lines of JSON with numbers of {command[0]}, got {got}{ended}{last}: {hint}"
    )
