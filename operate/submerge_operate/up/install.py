"""install(), uninstall(): the unit that starts a machine at boot, and its removal.

Both may be repeated. Without systemd the file is written, and the commands that follow are said.
"""

from __future__ import annotations

import os
import pwd
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from submerge import UsageError
from submerge_client.alarms.factory import STREAM
from submerge_client.files import atomic_write
from submerge_operate.up.config import BoxConfig
from submerge_operate.up.folder import make_folder

HEAD = """\
# Written by `submerge up --install`; `submerge up --uninstall` removes it. Changes of your own go
# into a drop-in: systemctl {user}edit {name}
[Unit]
Description=submerge: watches the sensors of {node}
{network}# A machine out of reach must never give up.
StartLimitIntervalSec=0

[Service]
Type=notify
NotifyAccess=main
ExecStart={command}
WorkingDirectory={folder}
Environment=OPENBLAS_NUM_THREADS=1
UMask=0077

Restart=on-failure
RestartSec=10
# On the signal, a program that still reacts saves its state; else systemd kills it.
WatchdogSec=120
WatchdogSignal=SIGTERM
TimeoutAbortSec=30
# A large store is checked from end to end before it is used.
TimeoutStartSec=600
TimeoutStopSec=45

TasksMax=64
LimitCORE=0
"""

NETWORK = """\
Wants=network-online.target
After=network-online.target time-sync.target
"""
"""Units that a user's manager does not have."""

OWN = """\
MemoryMax=256M
MemoryDenyWriteExecute=yes
RestrictAddressFamilies=AF_INET AF_INET6 AF_UNIX
SystemCallFilter=@system-service
# It asks the kernel whether its clock is synchronised.
SystemCallFilter=adjtimex clock_adjtime
SystemCallErrorNumber=EPERM
RestrictNamespaces=yes
RestrictRealtime=yes
RestrictSUIDSGID=yes
LockPersonality=yes
SystemCallArchitectures=native
NoNewPrivileges=yes
"""
"""Restrictions that hold for threads of ours, in any unit."""

SYSTEM_PART = """\
ProtectSystem=strict
ProtectHome=read-only
ProtectHostname=yes
ProtectKernelTunables=yes
ProtectKernelModules=yes
ProtectKernelLogs=yes
ProtectControlGroups=yes
PrivateMounts=yes
PrivateDevices=yes
DevicePolicy=closed
CapabilityBoundingSet=
AmbientCapabilities=
KeyringMode=private
"""
"""Those that need a system's manager."""


def unit_name(config: BoxConfig) -> str:
    """Return the name of the unit: two machines of different names may share a computer."""
    return f"submerge-{config.node}.service"


def unit_text(config: BoxConfig, path: Path, here: Path, *, owner: str | None) -> str:
    """Return the unit; without an owner, a user's. Relative paths are in `here`."""
    # Not resolved: in a virtual environment the interpreter is a link.
    script = Path(sys.executable).with_name("submerge")
    program = [script] if script.exists() else [sys.executable, "-m", "submerge_operate"]
    command = [*map(str, program), "up", "--config", str(here / path)]
    head = HEAD.format(
        user="" if owner is not None else "--user ",
        name=unit_name(config),
        node=config.node,
        # A dollar begins a variable there, and nowhere else.
        command=" ".join(_quoted(word).replace("$", "$$") for word in command),
        folder=_plain(here),
        network="" if owner is None else NETWORK,
    )
    foreign = config.sensor.runs_program
    # Its program is looked for where this shell finds it.
    found = f"Environment={_quoted('PATH=' + os.environ.get('PATH', os.defpath))}\n"
    parts = [head, found if foreign else OWN]
    if owner is not None:
        parts.append(f"User={owner}\n")
        if not foreign:
            folders = written_folders(config, here)
            writable = " ".join(_quoted(str(each)) for each in folders)
            parts.append(f"{SYSTEM_PART}ReadWritePaths={writable}\n")
            # A private /tmp would hide what lies there.
            places, temporary = (here / path, here, *folders), ("/tmp", "/var/tmp")  # noqa: S108
            if not any(each.is_relative_to(of) for each in places for of in temporary):
                parts.append("PrivateTmp=yes\n")
    wanted_by = "default.target" if owner is None else "multi-user.target"
    return "".join([*parts, f"\n[Install]\nWantedBy={wanted_by}\n"])


def written_folders(config: BoxConfig, here: Path) -> list[Path]:
    """Return the folders in which the program writes, absolute."""
    folders = [here / config.folder]
    lines = config.alarms.ndjson
    if lines is not None and lines != STREAM:
        folders.append((here / lines).parent)
    return list(dict.fromkeys(folders))


def _quoted(word: str) -> str:
    """Return a word as systemd reads it back."""
    escaped = _plain(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if set(escaped) & set(" '\"\\") else escaped


def _plain(path: str | Path) -> str:
    """Return a path with systemd's specifiers escaped."""
    if not str(path).isprintable():
        raise UsageError(f"expected a path of characters that print, got {str(path)!r}: rename it")
    return str(path).replace("%", "%%")


Tell = Callable[[str], None]

SYSTEM = Path("/etc/systemd/system")


class UnitFolder(NamedTuple):
    """Where units are: `folder` has this one, a user's or not; `system` has those of the system."""

    folder: Path
    user: bool
    system: Path = SYSTEM

    @classmethod
    def of_this_process(cls, environ: Mapping[str, str]) -> UnitFolder:
        """Return the system's for root, and otherwise the user's."""
        if os.geteuid() == 0:
            return cls(SYSTEM, user=False)
        try:
            home = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
        except RuntimeError:
            raise UsageError(
                f"expected HOME or XDG_CONFIG_HOME for units of user {os.geteuid()}, got neither"
            ) from None
        return cls(home / "systemd" / "user", user=True)

    @property
    def systemctl(self) -> tuple[str, ...]:
        return ("systemctl", "--user") if self.user else ("systemctl",)


def install(config: BoxConfig, path: Path, place: UnitFolder, tell: Tell) -> int:
    """Write the unit, and have systemd start it now and at boot; return the exit status."""
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
        user = _user_name(os.geteuid())
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
    ended = f"{' '.join(command)} ended with status {done.returncode}"
    return lines[0].rstrip(".") if lines else ended


def _owner_of(folder: Path) -> str:
    """Return who owns a folder, or what is there of its path."""
    there = next(each for each in (folder, *folder.parents) if each.exists())
    return _user_name(there.stat().st_uid)


def _user_name(uid: int) -> str:
    """Return a user's name; the number of one without a name, which systemd takes as well."""
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return str(uid)


def _lingers() -> bool:
    return Path("/var/lib/systemd/linger", _user_name(os.geteuid())).exists()
