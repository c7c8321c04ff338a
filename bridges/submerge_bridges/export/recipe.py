"""Recipe: everything that scoring a row needs, as plain arrays and numbers.

Of a row x (d,), in its units, a program outside Python computes

    s = (x - offset) / scale              refused if one is NaN, or not below `largest` in size
    c = s - mean
    y = inverse_roots * c                 in units of each channel's noise
    z = gains * (y @ loadings)            loadings (d, k), in units of the noise
    e = y - loadings @ z
    distance = (e.e + z.z) / excess       where `by_distance`
    v = c @ basis                         basis (d, r)
    spe = |c - basis @ v|^2 / excess      0 where `complete`
    t2 = (v^2 . t2_weights) / excess
    error_j = error_weights_j * e_j       of predicting channel j from all the others, scaled
    blame_j = blame_weights_j * e_j^2     divided by their sum: the share of channel j
    channel = max_j channel_weights_j * e_j^2

`interpreter.py` computes exactly that, row by row; the tests compare it with `judge.score`.
Loadings are turned so that their columns are orthogonal: then z needs `gains` alone. What a client
does beside this is left out (docs/export.md).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from submerge._linalg import Array
from submerge.client.alarms.detect import LONGER
from submerge.errors import UsageError
from submerge.history.settings import SOON
from submerge.judge.prepare import LARGEST_SCALED
from submerge.stats.score_limits import LimitSteps
from submerge.stats.smoothing import HELD, WEIGHT
from submerge.stats.statistic import STATISTICS, By, averaged


@dataclass(frozen=True, slots=True, eq=False)
class AlarmRecipe:
    """When rows raise an alarm: as `client.alarms.detect`; scores before the first row are 0.

    weight : An average is s = weight x + (1 - weight) s', s' the value before, at most `held`.
    ends_after : An alarm ends at the last of so many rows with no statistic above its `calm`.
    """

    after: int = SOON.after
    of: int = SOON.of
    ends_after: int = LONGER * SOON.of
    # of the kinds that alarms are raised by, in their order; all finite
    limits: Mapping[By, float] = field(default_factory=dict)
    calm: Mapping[By, float] = field(default_factory=dict)
    # rows in which such limits are exceeded about once, if they are provisional; else 0
    provisional_rows: float = 0.0
    at_most: str = ""
    weight: float = WEIGHT  # of the newest distance, in an average

    @property
    def held(self) -> float:
        """The largest average that is remembered."""
        return HELD * self.limits[self.averages[0]]

    @property
    def kinds(self) -> tuple[By, ...]:
        """What alarms are raised by, in order."""
        return tuple(self.limits)

    @property
    def windows(self) -> tuple[By, ...]:
        """Kinds whose last scores are remembered."""
        return tuple(kind for kind in self.limits if kind not in self.averages)

    @property
    def averages(self) -> tuple[By, ...]:
        """Kinds that are moving averages of distances: one, or none."""
        return averaged(self.limits)


@dataclass(frozen=True, slots=True, eq=False)
class Recipe:
    """Everything that scoring a row needs; the module says how it is used."""

    group: str
    version: int
    fingerprint: str
    channels: tuple[str, ...]
    units: tuple[str, ...]
    period_s: float  # that a row stands for; 0 without times
    offset: Array
    scale: Array
    mean: Array
    inverse_roots: Array
    loadings: Array  # (d, k)
    gains: Array  # (k,)
    basis: Array  # (d, r)
    t2_weights: Array  # (r,)
    error_weights: Array
    blame_weights: Array
    channel_weights: Array | None  # (d,); None where typical errors of a day are not known
    scores: tuple[By, ...]
    limits: Mapping[By, LimitSteps]  # shares of normal rows, and scores, ascending
    alarm: AlarmRecipe
    excess: float = 1.0
    complete: bool = False  # the basis spans all: SPE is 0
    largest: float = LARGEST_SCALED  # scaled numbers have to be smaller in size

    @property
    def dim(self) -> int:
        return len(self.channels)

    @property
    def computed(self) -> tuple[By, ...]:
        """All scores of single rows: `scores`, and `channel` where it raises alarms."""
        return (*self.scores, "channel") if "channel" in self.alarm.kinds else self.scores

    @property
    def by_distance(self) -> bool:
        return "distance" in self.scores

    def only(self, kind: By) -> Recipe:
        """Return the recipe of one score, and of the alarms that follow from it alone."""
        if kind not in self.scores:
            known = ", ".join(self.scores)
            raise UsageError(f"expected a statistic of the model ({known}), got {kind}")
        kinds = [each for each in self.alarm.kinds if STATISTICS[each].of == kind]
        alarm = replace(
            self.alarm,
            limits={each: self.alarm.limits[each] for each in kinds},
            calm={each: self.alarm.calm[each] for each in kinds},
        )
        limits = {kind: self.limits[kind]} if kind in self.limits else {}
        return replace(self, scores=(kind,), limits=limits, alarm=alarm, channel_weights=None)


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What a writer may be asked for beside the recipe."""

    single: bool = False
    prefix: str = "submerge"


@dataclass(frozen=True, slots=True)
class ExportWriter:
    """Writes programs in one language: an entry point of the group `submerge.exports`."""

    # Its text has `MADE_BY` in its first `HEAD` bytes: only such a file is written over.
    write: Callable[[Recipe, ExportOptions], bytes]
    takes: frozenset[str] = frozenset()  # names of options that it heeds


MADE_BY = "submerge model export"

HEAD = 1000


LONGEST = 60  # letters of a name in a comment
LONGEST_IDENTIFIER = 31  # letters of a name in an identifier: compilers of C99 may ignore the rest


def harmless(text: str) -> str:
    """Return a text of plain letters, for a comment: others become underscores."""
    return re.sub(r"[^A-Za-z0-9 .,:()+-]", "_", text[:LONGEST])


def identifiers(names: Sequence[str]) -> list[str]:
    """Return a different identifier for each name: lower-case letters, digits, underscores."""
    # They may begin with a digit.
    found: dict[str, None] = {}
    for number, name in enumerate(names):
        plain = re.sub(r"[^a-z0-9]+", "_", name[:LONGEST_IDENTIFIER].lower()).strip("_")
        each = plain or str(number)
        while each in found:
            each = f"{plain}_{number}" if plain else f"_{each}"
            plain = each
        found[each] = None
    return list(found)


def about_lines(recipe: Recipe) -> list[str]:
    """Return the lines with which a program begins."""
    alarm = recipe.alarm
    channels = f"{recipe.dim} channel{'s' * (recipe.dim != 1)}"
    every = f", one row every {recipe.period_s:g} s" if recipe.period_s else ""
    lines = [
        "Made by `submerge model export`: scores rows of one machine, and says when they raise an",
        "alarm. docs/export.md says what it does, and what only the product does.",
        "",
        f"model      {harmless(recipe.group)}, version {recipe.version}",
        f"schema     {recipe.fingerprint}",
        f"rows       {channels}{every}",
        f"scores     {', '.join(recipe.scores)}",
    ]
    if not alarm.limits:
        return [*lines, "alarms     none: the model has no limits for them"]
    by = f"{', '.join(alarm.kinds)}; {alarm.after} of {alarm.of} rows"
    lines += [f"alarms by  {by}"]
    if alarm.provisional_rows:
        rows = f"{alarm.provisional_rows:,.0f}"
        return [*lines, f"limits     provisional: about 1 false alarm in {rows} rows"]
    return [*lines, f"limits     at most {harmless(alarm.at_most)}"]
