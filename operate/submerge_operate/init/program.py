"""propose_program(): the channels in the lines of JSON that a program prints."""

from __future__ import annotations

import json
import os
import select
import shutil
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import IO

from submerge import UsageError
from submerge_client.config.schemas import ChannelConfig, SchemaConfig
from submerge_client.config.tomlfile import quoted
from submerge_client.sensors.lines import LineReader
from submerge_client.sensors.mqtt.decoder import MOST_NAMES, Heard, as_number
from submerge_client.sensors.ndjson import CHUNK, TIMES
from submerge_client.sensors.program import Process, begin, check_command, end, has_ended
from submerge_operate.init.choice import STATE, choose
from submerge_operate.init.proposal import Proposal

LISTEN_S = 10.0
LOOK_S = 0.1

SENSOR = """\
# Where readings come from: a line of JSON for each row of this program, started without a shell.
[sensor]
kind = "program"
command = {command}
"""

SCALES = """\
# The units differ: it first measures each channel's mean and deviation."""


NO_NUMBERS = {STATE: "words and booleans: let the program print numbers for them"}


class _Rows:
    """Counts a program's lines, and remembers their numbers and words."""

    def __init__(self) -> None:
        self.heard, self.words = Heard(), dict[str, set[str]]()
        self.rows = self.other = 0

    def take(self, line: bytes | None, now: float) -> None:
        """Take a line; one that is no row is only counted."""
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
    """Run a program for a while, and return what its lines have."""
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
        sensor=SENSOR.format(command=f"[{', '.join(map(quoted, whole))}]"),
        schema=SchemaConfig(channels=channels, scaling="fleet"),
        schema_note=SCALES,
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
