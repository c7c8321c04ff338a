"""A kind's settings as options of its command, and back: no kind has code here."""

from __future__ import annotations

from typing import Any

import click

from submerge.jobs.job import Settings
from submerge.jobs.kind import JobSetting
from submerge.jobs.kinds import settings_of
from submerge_fleet.console.options import Decorator, together
from submerge_fleet.console.units import share

TYPES: dict[str, Any] = {"whole": int, "number": float, "text": str}


def setting_options(kind: str) -> Decorator:
    """Return an option for each setting that a kind knows."""
    return together(*map(_option, settings_of(kind)))


def settings_given(kind: str, given: dict[str, Any]) -> Settings:
    """Take the settings of a kind out of what a command was given; those left out have none."""
    values = {each.name: given.pop(each.name) for each in settings_of(kind)}
    return {name: value for name, value in values.items() if value is not None}


def _option(setting: JobSetting) -> Decorator:
    named = f"--{setting.name.replace('_', '-')}"
    text = f"{setting.meaning}  [default: {setting.default}]" if setting.default else ""
    if setting.form == "flag":
        named = f"{named}/--no-{named[2:]}"
        return click.option(named, setting.name, default=None, help=text)
    form = share if setting.name == "held_out" else TYPES[setting.form]
    return click.option(
        named,
        setting.name,
        type=form,
        required=not setting.default,
        help=text or setting.meaning,  # click says itself that it is required
    )
