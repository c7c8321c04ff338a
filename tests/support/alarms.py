"""Alarms as a node tells of them, and a file system and a process that can be killed."""

from __future__ import annotations

import io
import json
import os
from collections.abc import Callable
from typing import Any

from submerge.protocol.alarm_status import Alarm
from submerge_client import logs

BEGAN = 1_767_225_600.0
"""2026-01-01, midnight in Greenwich."""

FIRST = Alarm(
    "pump-1",
    int(BEGAN * 1000),
    began=BEGAN,
    peaked=BEGAN + 10,
    ended=0.0,
    worst=3.21,
    cause="spe",
    top=(("flow", 0.81), ("temp [°C]", 0.12)),
    version=7,
    withheld=5,
)


def alarm(n: int = 0, *, over: bool = False, **changes: Any) -> Alarm:
    """The n-th alarm of a node, an hour after the one before; each lasts a minute."""
    began = FIRST.began + 3600 * n
    reported = {"number": int(began * 1000), "began": began, "peaked": began + 10, **changes}
    ended = began + 60 if over else 0.0
    return Alarm(**{**{name: getattr(FIRST, name) for name in NAMES}, "ended": ended, **reported})


NAMES = Alarm.__slots__

HISTORY = (
    (),
    (alarm(0),),
    (alarm(0, over=True),),
    (alarm(1), alarm(0, over=True)),
    (alarm(1, over=True), alarm(0, over=True)),
)
"""What a node tells of in the course of two alarms."""


class Log:
    """What a program logs from here on."""

    def __init__(self) -> None:
        self._stream = io.StringIO()
        logs.begin("debug", as_json=True, stream=self._stream)

    @property
    def lines(self) -> list[dict[str, Any]]:
        """Its lines so far."""
        return [json.loads(line) for line in self._stream.getvalue().splitlines()]

    def said(self) -> list[str]:
        """What it says, without the facts."""
        return [line["what"] for line in self.lines]


class Killed(BaseException):
    """The process is gone: nothing that it has is asked for anything any more."""


class Killer:
    """Kills at the n-th operation: before it, once it is done, or when half is written.

    Parameters
    ----------
    n : int
        Which; -1 kills never, and counts.
    when : {"before", "after", "within"}
    """

    def __init__(self, n: int = -1, when: str = "before") -> None:
        self.done = 0
        self._n, self._when = n, when

    def guarded(self, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call that the process may not survive."""

        def risky(*args: Any, **more: Any) -> Any:
            mine = self.done == self._n
            self.done += 1
            if mine and self._when == "before":
                raise Killed
            if mine and self._when == "within" and call is WRITE:
                call(args[0], args[1][: len(args[1]) // 2])
                raise Killed
            result = call(*args, **more)
            if mine:
                raise Killed
            return result

        return risky


WRITE = os.write
RISKY = ("write", "fsync", "replace", "open", "close")
"""Between any two of these a process may end."""
