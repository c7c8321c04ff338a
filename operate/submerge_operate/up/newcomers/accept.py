"""accept(): `submerge up --accept PATTERN`: fields that were heard become channels.

A program that runs meanwhile takes them within a minute, and any other at its next start.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from fnmatch import fnmatchcase

from submerge import UsageError
from submerge_operate.up.config import BoxConfig
from submerge_operate.up.newcomers import files
from submerge_operate.up.newcomers.newcomer import CONSTANT, EARLY, Newcomer

MOST_SHOWN = 10


def accept(config: BoxConfig, patterns: Sequence[str], say: Callable[[str], None]) -> None:
    """Accept what fits one of the patterns, and say so.

    Raises
    ------
    UsageError
        If nothing fits, or it cannot be a channel yet.
    """
    folder = config.folder
    heard, accepted = files.read(folder / files.HEARD), files.read(folder / files.ACCEPTED)
    known = {*config.schema.names, *(each.name for each in accepted)}
    new = [each for each in heard if each.name not in known]
    chosen = [each for each in new if any(fnmatchcase(each.name, one) for one in patterns)]
    if not chosen:
        names = ", ".join(each.name for each in new[:MOST_SHOWN]) or "nothing new"
        more = ", ..." if len(new) > MOST_SHOWN else ""
        raise UsageError(
            f"--accept: expected a name or pattern of a field that was heard, got"
            f" {' '.join(patterns)}; heard: {names}{more}"
        )
    ready = [each for each in chosen if each.why_not not in (EARLY, CONSTANT)]
    for each in chosen:
        if each not in ready:
            say(f"{each.name}: {each.why_not}; {_when(each)}")
    if not ready:
        raise UsageError(
            f"--accept: expected a field with enough readings, got {chosen[0].name}"
            f" ({chosen[0].why_not}): {_when(chosen[0])}"
        )
    # A wrong name is refused before it is written.
    config.with_channels(each.channel for each in (*accepted, *ready))
    files.write(folder / files.ACCEPTED, (*accepted, *ready))
    for each in ready:
        say(f"{each.name}: accepted")
    say("submerge up takes them within a minute, or at its next start")


def _when(field: Newcomer) -> str:
    until = "spoken for half an hour" if field.why_not == EARLY else "changed"
    return f"try again when it has {until}"
