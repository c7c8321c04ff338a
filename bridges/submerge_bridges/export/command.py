"""`submerge model export`: a model as a program for where Python is not."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, cast

import click
import numpy as np

from submerge._linalg import EPS, Array
from submerge.client.alarms.detect import LONGER
from submerge.client.monitor_state import MonitorState
from submerge.drill.response import NodeScorer
from submerge.errors import UsageError
from submerge.headings import lags_of
from submerge.history.detection import watching
from submerge.history.settings import SOON
from submerge.pca.factor import Precision
from submerge.pca.own_scatter import of_node
from submerge.pca.reconstruct import Reconstruction, usual_squares
from submerge.pca.subspace import Subspace
from submerge.protocol.settings import AlarmSettings
from submerge.schema import Scaling
from submerge.stats.residual_scale import ResidualScale
from submerge.stats.score_limits import Limits, LimitSteps
from submerge.stats.statistic import SCORES, STATISTICS, By, averaged, raised_by
from submerge_bridges.export.recipe import (
    HEAD,
    MADE_BY,
    AlarmRecipe,
    ExportOptions,
    ExportWriter,
    Recipe,
)
from submerge_client.config.plugins import plugin, plugins
from submerge_files.console.options import FILE, default_option, flag_option, json_option

if TYPE_CHECKING:
    from submerge_files.model_file import SavedModel


MOST_NUMBERS = 4_000_000  # most numbers in a recipe: each takes some 20 bytes of a program's text


def recipe_of(
    saved: SavedModel,
    *,
    machine: str | None = None,
    alarms: AlarmSettings = SOON,
    at_most: str = "1 false per week",
) -> Recipe:
    """Return the recipe of a model."""
    # A machine is needed where each has its own mean.
    from submerge_files.score.model import of_machine, of_saved

    _check_kind(saved)
    normal, schema = of_saved(saved), saved.schema
    scorer = of_machine(normal, machine)
    shown = normal.shown.shown(normal.summary).parts[0].shown
    readings = normal.summary.parts[0] if normal.factors else shown
    if not readings.rank:
        raise UsageError(f"{saved.whence} has learnt no directions yet: export a later one")
    precision = Precision.of(readings, *of_node(normal.factors, readings, scorer.scoring.own)[:1])
    numbers = precision.loadings.size + shown.basis.size
    if numbers > MOST_NUMBERS:
        raise UsageError(
            f"expected a model of at most {MOST_NUMBERS:,} numbers, got {numbers:,}: fit it with"
            " fewer channels"
        )
    model, width = saved.model, schema.width
    scaling = schema.scaling or Scaling((0.0,) * width, (1.0,) * width)
    columns, sizes, _ = np.linalg.svd(precision.loadings, full_matrices=False)
    scores: tuple[By, ...] = SCORES if normal.factors else SCORES[1:]
    recall = Reconstruction(readings, width, precision)
    expected = recall.expected
    errors, typical, own = expected / precision.roots, _typical(scorer), scorer.own
    channel_weights = None if typical is None else errors**2 * typical.weights(expected)
    return Recipe(
        *(model.group, model.version, model.fingerprint, schema.names),
        units=tuple(each.unit for each in schema.named),
        period_s=saved.known.period_s,
        offset=np.array(scaling.offset),
        scale=np.array(scaling.scale),
        mean=np.asarray(readings.mean if own is None else own.rows, dtype=np.float64),
        inverse_roots=1 / precision.roots,
        loadings=columns * sizes,
        gains=1 / (1 + sizes**2),
        basis=np.asarray(shown.basis, dtype=np.float64),
        t2_weights=_t2_weights(shown),
        error_weights=errors,
        blame_weights=errors**2
        / usual_squares(expected, None if typical is None else typical.typical, recall.pairs),
        channel_weights=channel_weights,
        scores=scores,
        limits={} if normal.limits is None else _steps(normal.limits, scores),
        alarm=_alarm(saved, scorer, alarms, at_most, normal.state(*([machine] if machine else []))),
        excess=1.0 if own is None else own.excess,
        complete=shown.rank == shown.dim,
    )


def _check_kind(saved: SavedModel) -> None:
    schema = saved.schema
    if not schema.linear or lags_of(schema.names) > 1:
        what = "lags" if schema.linear else "a kernel"
        raise UsageError(
            f"expected a model of single rows without a kernel, got one with {what} in"
            f" {saved.whence}: `submerge score` takes it"
        )


def _typical(scorer: NodeScorer) -> ResidualScale | None:
    """Return the typical errors of the machine, once they cover a day."""
    scale = scorer.residual_scale
    return scale if scale is not None and scale.ready else None


def _t2_weights(shown: Subspace) -> Array:
    """Return the weights of squares along each direction, as `pca.score.Scorer` has them."""
    variance = shown.explained_variance
    solid = variance > shown.dim * EPS * variance[:1]
    return np.divide(1.0, variance, out=np.zeros_like(variance), where=solid)


def _steps(limits: Limits, scores: tuple[By, ...]) -> dict[By, LimitSteps]:
    """Return the shares of normal rows below each score, without those that are no limits."""
    found = {}
    for kind in scores:
        shares, values = limits.steps(kind)
        if len(shares) > 1:
            found[kind] = LimitSteps(shares[1:], values[1:])
    return found


def _alarm(
    saved: SavedModel,
    scorer: NodeScorer,
    alarms: AlarmSettings,
    at_most: str,
    state: MonitorState | None,
) -> AlarmRecipe:
    """Return when rows raise an alarm, with the limits that `history.detection` compares with."""
    model, own = saved.model, scorer.own
    kinds = raised_by(factors=bool(model.factors))
    row_s = saved.known.period_s or 1.0
    detector = watching(saved.known, alarms, state)
    settled = own is None or own.settled
    # Where the mean does not cover a day, the largest error of a channel raises no alarm.
    computed = (*SCORES, "channel") if _typical(scorer) and settled else SCORES
    known = [kind for kind in kinds if STATISTICS[kind].of in computed]
    known.sort(key=averaged(kinds).__contains__)  # as the programs compare them
    limits = {kind: detector.limit(kind, settled=settled) for kind in known}
    limits = {kind: limit for kind, limit in limits.items() if limit < math.inf}
    return AlarmRecipe(
        alarms.after,
        alarms.of,
        LONGER * alarms.of,
        limits,
        {kind: limit * detector.limits.calm(kind) for kind, limit in limits.items()},
        detector.limits.provisional_s / row_s,
        at_most,
    )


OPTIONS = {"single": "--float32", "prefix": "--prefix"}  # by fields of `ExportOptions`


@click.command(
    "export",
    epilog="""\b
Example: submerge fit history.csv -o plant.model
         submerge model export plant.model --as c -o plant.c""",
)
@click.argument("model", type=FILE)
@click.option(
    "--as",
    "language",
    type=click.Choice([each.name for each in plugins("submerge.exports")]),
    required=True,
    help="The language.",
)
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
    options = ExportOptions(single, prefix)
    writer = _writer(language)
    _check_options(language, writer, options)
    _check_target(output)
    recipe = _recipe(model, statistic, machine, at_most)
    data = writer.write(recipe, options)
    if MADE_BY.encode() not in data[:HEAD]:  # it could never be written over
        raise UsageError(
            f"expected {MADE_BY!r} in the first {HEAD} bytes of --as {language}, got none: its"
            " package has to begin with `about_lines` (docs/extending.md)"
        )
    from submerge_client.files import atomic_write, writing_to

    with writing_to(str(output)):
        atomic_write(output, data)
    notes = _notes(recipe)
    if as_json:
        click.echo(json.dumps(_facts(recipe, language, output, data) | {"notes": notes}))
        return
    click.echo(f"{output}: {language}, {recipe.dim} channels, {len(data):,} bytes")
    for line in notes:
        click.echo(f"note: {line}", err=True)


def _recipe(model: Path, statistic: str | None, machine: str | None, at_most: str) -> Recipe:
    from submerge_files import model_file
    from submerge_files.detect.run import alarms_at

    saved = model_file.read(model)
    recipe = recipe_of(saved, machine=machine, alarms=alarms_at(at_most), at_most=at_most)
    return recipe if statistic is None else recipe.only(cast("By", statistic))


def _writer(language: str) -> ExportWriter:
    try:
        found = plugin("submerge.exports", language)
    except (ImportError, AttributeError) as error:
        raise UsageError(
            f"--as {language} cannot be loaded ({error}): repair or remove its package"
        ) from error
    if not isinstance(found, ExportWriter):
        raise UsageError(f"--as {language} is no ExportWriter: repair or remove its package")
    return found


def _check_options(language: str, writer: ExportWriter, options: ExportOptions) -> None:
    plain = ExportOptions()
    for name, option in OPTIONS.items():
        if name not in writer.takes and getattr(options, name) != getattr(plain, name):
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
