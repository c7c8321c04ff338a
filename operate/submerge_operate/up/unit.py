"""unit_text(): the systemd unit of one machine.

1. Paths are absolute, as the configuration means them here: the unit's working directory is the
   present one.
2. systemd restarts the program when it fails, and when its sensor or its loop hangs (`Watchdog`).
   A program that ended because its files came to an end stays ended.
3. A system unit runs as the owner of the machine's folder, and may write there only. A user's
   manager cannot set up namespaces everywhere, so a user's unit has the restrictions that need
   none.
4. A program that prints readings may be anything: it inherits what the unit forbids. So little is
   forbidden there.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from submerge import UsageError
from submerge_client.alarms.factory import STREAM
from submerge_operate.up.config import BoxConfig

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

SYSTEM = """\
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
    """Return the unit.

    path : Its file.
    here : The present folder, in which relative paths are.
    owner : The user of a system unit; None for a user's unit.

    Raises
    ------
    UsageError
        If a path cannot stand in a unit.
    """
    command = [*_program(), "up", "--config", str(here / path)]
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
            parts.append(f"{SYSTEM}ReadWritePaths={writable}\n")
            # A private /tmp would hide what lies there.
            if not any(_is_temporary(each) for each in (here / path, here, *folders)):
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


def _is_temporary(path: Path) -> bool:
    return any(path.is_relative_to(each) for each in ("/tmp", "/var/tmp"))  # noqa: S108


def _program() -> list[str]:
    """Return the command of this installation."""
    # Not resolved: in a virtual environment the interpreter is a link.
    script = Path(sys.executable).with_name("submerge")
    return [str(script)] if script.exists() else [sys.executable, "-m", "submerge_operate"]


def _quoted(word: str) -> str:
    """Return a word as systemd reads it back."""
    escaped = _plain(word).replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"' if set(escaped) & set(" '\"\\") else escaped


def _plain(path: str | Path) -> str:
    """Return a path with systemd's specifiers escaped."""
    if not str(path).isprintable():
        raise UsageError(f"expected a path of characters that print, got {str(path)!r}: rename it")
    return str(path).replace("%", "%%")
