"""install(), uninstall(): the unit that starts a machine at boot, and its removal.

Each says what it wrote, what it ran, and what is left to type. Both may be repeated: the second
time changes nothing. Where there is no systemd, the file is written all the same, and the
commands that would follow are said.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge_client.atomic_file import atomic_write
from submerge_operate.up.config import BoxConfig
from submerge_operate.up.folder import make_folder
from submerge_operate.up.unit import unit_name, unit_text

Tell = Callable[[str], None]

SYSTEM = Path("/etc/systemd/system")


class UnitFolder(NamedTuple):
    """Where units are.

    folder : of the unit
    user : whether it is a user's unit
    system : the folder of system units
    """

    folder: Path
    user: bool
    system: Path = SYSTEM

    @classmethod
    def of_this_process(cls, environ: Mapping[str, str]) -> UnitFolder:
        """Return the system's for root, and otherwise the user's."""
        if os.geteuid() == 0:
            return cls(SYSTEM, user=False)
        home = environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
        return cls(Path(home) / "systemd" / "user", user=True)

    @property
    def systemctl(self) -> tuple[str, ...]:
        """The command that it is managed with."""
        return ("systemctl", "--user") if self.user else ("systemctl",)


def install(config: BoxConfig, path: Path, place: UnitFolder, tell: Tell) -> int:
    """Write the unit, and have systemd start it now and at boot; return the exit status.

    Raises
    ------
    UsageError
        If the sensor reads standard input, the unit cannot be written, or another one is there.
    """
    if config.sensor.reads_input:
        raise UsageError(
            'a sensor of kind "ndjson" or "influx" reads standard input, which a service does not'
            ' have: start `submerge up` behind your program, or use kind "program", "mqtt", "file"'
            ' or "host"'
        )
    _refuse_second(config, place)
    here, name = Path.cwd(), unit_name(config)
    owner = None if place.user else _owner_of(here / config.folder)
    make_folder(here / config.folder, owner=owner)
    unit = place.folder / name
    before = unit.read_text() if unit.exists() else None
    text = unit_text(config, path, here, owner=owner)
    if text == before:
        tell(f"{unit} is as it was")
    else:
        _write(unit, text)
        tell(f"wrote {unit}")
    commands: list[tuple[str, ...]] = [("daemon-reload",), ("enable", "--now", name)]
    if before not in (None, text):
        commands.append(("restart", name))  # it runs with the settings of before
    if not _run_all(place, commands, tell, failed="it does not start at boot yet"):
        return 1
    tell(f"{name} runs, and starts at boot")
    if place.user and not _lingers():
        user = pwd.getpwuid(os.geteuid()).pw_name
        tell(
            "a user's unit starts at the first login, and stops at the last logout; for a start at"
            f" boot, type: sudo loginctl enable-linger {user}"
        )
    flag = "--user-unit" if place.user else "-u"
    tell(f"its lines: journalctl {flag} {name} -f")
    return 0


def uninstall(config: BoxConfig, path: Path, place: UnitFolder, tell: Tell) -> int:
    """Stop and remove the unit; return the exit status. The data and the configuration stay."""
    name = unit_name(config)
    unit, status = place.folder / name, 0
    if unit.exists():
        managed = shutil.which(place.systemctl[0]) is not None
        disable, reload = [("disable", "--now", name)], [("daemon-reload",)]
        if managed and not _run_all(place, disable, tell, failed="it may still run"):
            status = 1
        try:
            unit.unlink()
        except OSError as error:
            raise UsageError(f"expected to remove {unit}, got: {error.strerror}") from error
        tell(f"removed {unit}")
        if managed and not status and not _run_all(place, reload, tell, failed="it is removed"):
            status = 1
    else:
        elsewhere = place.system / name
        if place.user and elsewhere.exists():
            raise UsageError(f"{elsewhere} is the system's: sudo submerge up --uninstall")
        tell(f"{name} is not installed")
    here = Path.cwd()
    tell(f"kept: what it has learnt in {here / config.folder}, its settings in {here / path}")
    return status


def _refuse_second(config: BoxConfig, place: UnitFolder) -> None:
    """Refuse a user's unit beside a system's: one of them would find its files taken."""
    other = place.system / unit_name(config)
    if place.user and other.exists():
        raise UsageError(
            f"{other} runs it for all users already: remove that one first, with"
            " `sudo submerge up --uninstall`, or give this machine another `node`"
        )


def _write(unit: Path, text: str) -> None:
    try:
        unit.parent.mkdir(parents=True, exist_ok=True)
        atomic_write(unit, text.encode(), mode=0o644)
    except OSError as error:
        raise UsageError(f"expected to write {unit}, got: {error.strerror}") from error


def _run_all(
    place: UnitFolder, commands: Sequence[tuple[str, ...]], tell: Tell, *, failed: str
) -> bool:
    """Run systemctl; where it fails, say what is left to type, and return False."""
    for i, command in enumerate(commands):
        why = _run([*place.systemctl, *command])
        if why is not None:
            left = " && ".join(" ".join([*place.systemctl, *each]) for each in commands[i:])
            tell(f"{why}; {failed}: where systemd runs, type: {left}")
            return False
    return True


def _run(command: list[str]) -> str | None:
    """Run a command; return why it failed, in one line, or None."""
    if shutil.which(command[0]) is None:
        return f"there is no {command[0]} here"
    done = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603
    if done.returncode == 0:
        return None
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    return (
        lines[0].rstrip(".")
        if lines
        else f"{' '.join(command)} ended with status {done.returncode}"
    )


def _owner_of(folder: Path) -> str:
    """Return who owns a folder, or what is there of its path."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return pwd.getpwuid(there.stat().st_uid).pw_name


def _lingers() -> bool:
    user = pwd.getpwuid(os.geteuid()).pw_name
    return Path("/var/lib/systemd/linger", user).exists()
