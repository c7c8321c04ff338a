"""`submerge model export`: a model as a program for where Python is not."""

from __future__ import annotations

import errno
import json
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click

from submerge.errors import UsageError
from submerge_files.console.options import FILE, default_option, flag_option, json_option

if TYPE_CHECKING:
    from submerge.stats.block_maxima import By
    from submerge_bridges.export.recipe import Recipe
    from submerge_bridges.export.writers import ExportOptions

LANGUAGES = ("c", "js", "onnx")
"""As in `writers`, which is imported late: help needs their names alone."""

SCORES = ("distance", "spe", "t2")
"""As in `recipe`, likewise."""

OPTIONS = {"single": "--float32", "prefix": "--prefix"}
"""By fields of `writers.ExportOptions`."""

MADE_BY = "submerge model export"
"""Each exported file says so in its first `HEAD` bytes: only such a file is written over."""

HEAD = 1000


@click.command(
    "export",
    epilog="""\b
Example: submerge fit history.csv -o plant.model
         submerge model export plant.model --as c -o plant.c""",
)
@click.argument("model", type=FILE)
@click.option("--as", "language", type=click.Choice(LANGUAGES), required=True, help="The language.")
@click.option("-o", "--output", type=FILE, required=True, help="The file to write.")
@click.option(
    "--statistic", type=click.Choice(SCORES), help="This score alone, for small programs."
)
@click.option("--machine", metavar="NAME", help="Whose mean, where each machine has its own.")
@default_option(
    "--at-most", "1 false per week", "The rate of false alarms that is promised.", metavar="RATE"
)
@flag_option("--float32", "c, onnx: compute in float, not in double.", "single")
@default_option("--prefix", "submerge", "c: what all names begin with.", metavar="NAME")
@json_option("Print what was written, as JSON.")
def command(
    model: Path,
    language: str,
    output: Path,
    statistic: str | None,
    machine: str | None,
    at_most: str,
    single: bool,
    prefix: str,
    as_json: bool,
) -> None:
    """Write the model in the file MODEL as a program that scores rows.

    It says of each row what `submerge score` and `submerge detect` say: its scores, the limits that
    they pass, the channel to blame, and whether an alarm is open. What the next row needs goes in
    and comes out. Each program has golden rows inside, by which it checks itself.

    It does not fill gaps, learn, or follow drift: docs/export.md says what is left out.
    """
    from submerge_bridges.export.writers import ExportOptions

    options = ExportOptions(single, prefix)
    _check_options(language, options)
    _check_target(output)
    recipe, data = _exported(model, language, statistic, machine, at_most, options)
    _write(output, data)
    notes = _notes(recipe)
    if as_json:
        click.echo(json.dumps(_facts(recipe, language, output, data) | {"notes": notes}))
        return
    click.echo(f"{output}: {language}, {recipe.dim} channels, {len(data):,} bytes")
    for line in notes:
        click.echo(f"note: {line}", err=True)


def _exported(
    model: Path,
    language: str,
    statistic: str | None,
    machine: str | None,
    at_most: str,
    options: ExportOptions,
) -> tuple[Recipe, bytes]:
    """Return the recipe of a model file, and the program by it."""
    from submerge_bridges.export.exported_model import recipe_of
    from submerge_bridges.export.writers import WRITERS
    from submerge_files import model_file
    from submerge_files.detect.run import alarms_at

    saved = model_file.read(model)
    recipe = recipe_of(saved, machine=machine, alarms=alarms_at(at_most), at_most=at_most)
    if statistic is not None:
        recipe = recipe.only(cast("By", statistic))
    return recipe, WRITERS[language].write(recipe, options)


def _check_options(language: str, options: ExportOptions) -> None:
    """Refuse options that would have no effect."""
    from submerge_bridges.export.writers import WRITERS, ExportOptions

    plain, takes = ExportOptions(), WRITERS[language].takes
    for name, option in OPTIONS.items():
        if name not in takes and getattr(options, name) != getattr(plain, name):
            raise UsageError(f"{option} has no effect on --as {language}: leave it out")


def _check_target(output: Path) -> None:
    """Refuse a place where no program can go: a mistyped name must not destroy another file."""
    if not output.parent.is_dir():
        raise UsageError(f"expected a folder {output.parent} for {output.name}, got none: make it")
    if not output.exists():
        return
    try:
        with output.open("rb") as file:
            head = file.read(HEAD)
    except OSError as error:
        raise UsageError(f"expected a file to write, got {output}: {error.strerror}") from error
    if head and MADE_BY.encode() not in head:
        raise UsageError(
            f"{output} exists and is no exported model: name another file, or remove it"
        )


def _write(output: Path, data: bytes) -> None:
    from submerge_client.atomic_file import atomic_write

    try:
        atomic_write(output, data)
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise  # not a mistake in the input: the command line reports it
        raise UsageError(f"cannot write {output}: {error.strerror}") from error


def _facts(recipe: Recipe, language: str, output: Path, data: bytes) -> dict[str, object]:
    return {
        "file": str(output),
        "as": language,
        "group": recipe.group,
        "version": recipe.version,
        "channels": recipe.dim,
        "scores": recipe.computed,
        "alarms_by": recipe.alarm.kinds,
        "limits": recipe.alarm.limits,
        "provisional_rows": recipe.alarm.provisional_rows,
        "bytes": len(data),
    }


def _notes(recipe: Recipe) -> list[str]:
    """Return sentences on what the program cannot do, and what a user has to know."""
    if not recipe.alarm.limits:
        return ["the model has no alarm limits for these scores: the program raises no alarm"]
    if recipe.alarm.provisional_rows:
        rows = f"{recipe.alarm.provisional_rows:,.0f}"
        return [f"limits are provisional: about 1 false alarm in {rows} rows"]
    return []
