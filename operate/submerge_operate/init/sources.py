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
from submerge_operate.init.mqtt import BrokerOptions, propose_mqtt
from submerge_operate.init.proposal import Proposal

HOST = "host"
URL = re.compile(r"[a-z][a-z0-9+.-]*://", re.IGNORECASE)
ADDRESS = re.compile(r"[\w.-]+:\d{1,5}|\d{1,3}(\.\d{1,3}){3}|localhost|[\w-]+\.(local|lan|home)")
SHELL = {"|", ">", ">>", "<", "&", "&&", "||", ";", "2>&1", "2>/dev/null"}
"""Words that mean something to a shell only."""

RECORDED = re.compile(r"\.(csv|tsv|txt|npy|npz|parquet|feather|arrow|model|log|gz|mat|xlsx)$", re.I)


def propose(source: str, options: BrokerOptions) -> Proposal:
    """Look at a source, and return what a configuration would have.

    options : those of a broker, without its url; its `listen_s` is a program's as well

    Raises
    ------
    UsageError
        If there is no such source, or nothing in it to learn from.
    """
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
        from submerge_operate.init.history import propose_history

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
