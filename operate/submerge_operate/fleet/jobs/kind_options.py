"""A kind's settings as options of its command, and back: no kind has code here.

A setting has the option of its name. Where the command has an option of that name already, as
`--columns` of FILEs, it has the kind's name before its own: `--kpca-columns`.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

import click

from submerge.jobs.job import Settings
from submerge.jobs.kind import JobSetting
from submerge.jobs.kinds import settings_of
from submerge_files.console.options import Decorator, together
from submerge_files.console.units import share

TYPES: dict[str, Any] = {"whole": int, "number": float, "text": str}

PREFIX = "setting_"
"""Of the names under which a command is given settings: they are no others'."""


def setting_options(kind: str, taken: Collection[str]) -> Decorator:
    """Return an option for each setting that a kind knows.

    taken : options of the command that are no settings, such as "--columns"
    """
    return together(*(_option(each, option_of(kind, each, taken)) for each in settings_of(kind)))


def settings_given(given: dict[str, Any]) -> Settings:
    """Take the settings of a kind out of what a command was given; those left out have none."""
    values = {name: given.pop(name) for name in [*given] if name.startswith(PREFIX)}
    return {n.removeprefix(PREFIX): value for n, value in values.items() if value is not None}


def option_of(kind: str, setting: JobSetting, taken: Collection[str]) -> str:
    """Return the name of a setting's option."""
    name = f"--{setting.name.replace('_', '-')}"
    return f"--{kind}-{name[2:]}" if name in taken else name


def _option(setting: JobSetting, named: str) -> Decorator:
    text = f"{setting.meaning}  [default: {setting.default}]" if setting.default else ""
    dest = f"{PREFIX}{setting.name}"
    if setting.form == "flag":
        return click.option(f"{named}/--no-{named[2:]}", dest, default=None, help=text)
    return click.option(
        *(named, dest),
        type=share if setting.name == "held_out" else TYPES[setting.form],
        required=not setting.default,
        help=text or setting.meaning,  # click says itself that it is required
    )
