"""A recipe as one file of C99: `scorer.c` beside this module, with the recipe's numbers in it.

The same recipe gives the same bytes. Names of channels reach the file as escapes or numbers, and as
identifiers of letters, digits and underscores: no name can end a comment or a string.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.resources import files

import numpy as np

from submerge._linalg import Array
from submerge.errors import UsageError
from submerge_bridges.export.interpreter import ExportResult, GoldenRows, golden_rows
from submerge_bridges.export.recipe import (
    ExportOptions,
    ExportWriter,
    Recipe,
    about_lines,
    identifiers,
)

LONGEST_LITERAL = 500
"""Longest name, in bytes, that is written as a string: C99 promises room for 4,095 in one."""

PLAIN = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789 _-.:/()[]%")
"""Bytes that are written as they are. Others are octal escapes, of three digits each."""

A_LINE = 4


class CNumbers:
    """Writes numbers as double, or as float if `single`."""

    def __init__(self, single: bool) -> None:
        self._single = single

    def number(self, value: float) -> str:
        """Return a finite number; raises UsageError if it does not fit float."""
        if not self._single:
            return repr(float(value))
        with np.errstate(over="ignore", under="ignore"):
            rounded = np.float32(value)
        if not np.isfinite(rounded):
            raise UsageError(
                f"the model holds {value:.4g}, which does not fit float: leave --float32 out"
            )
        text = f"{rounded:.9g}"
        return f"{text}f" if "." in text or "e" in text else f"{text}.0f"

    def reading(self, value: float) -> str:
        """Return a reading, which may be no number."""
        if np.isnan(value):
            return "NAN"
        return self.number(value) if np.isfinite(value) else ("-INFINITY", "INFINITY")[value > 0]

    def row(self, values: Iterable[float]) -> str:
        """Return numbers in braces."""
        return f"{{{', '.join(map(self.number, values))}}}"

    def array(self, declared: str, values: Array) -> str:
        """Return the definition of an array, all its numbers one after the other."""
        each = [self.number(value) for value in np.ravel(values).tolist()]
        lines = [", ".join(each[i : i + A_LINE]) for i in range(0, len(each), A_LINE)]
        return f"{declared} = {{\n    " + ",\n    ".join(lines) + "\n};"


def c_string(name: str) -> str:
    """Return a name as a string of ASCII, for a pointer to characters that never change."""
    data = name.encode()
    if len(data) > LONGEST_LITERAL:
        signed = (each - 256 * (each > 127) for each in data)
        return f"(const char[]){{{', '.join(map(str, signed))}, 0}}"
    return '"' + "".join(chr(each) if each in PLAIN else f"\\{each:03o}" for each in data) + '"'


PREFIX = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,30}")  # what the functions' names may begin with

OWN = 0.05
"""What factors leave of a channel, y - L z, is a difference of two numbers that are nearly the same
where the channel has a factor to itself. Where less than this of y remains, float has a row of the
matrix I - L G L' for it, computed in double."""


def c_source(recipe: Recipe, *, single: bool = False, prefix: str = "submerge") -> str:
    """Return the text of the C file, in ASCII."""
    if not PREFIX.fullmatch(prefix):
        raise UsageError(
            "expected --prefix of at most 31 letters, digits and underscores that begins with a"
            f" letter, got {prefix[:40]!r}"
        )
    writer = _CWriter(recipe, single, prefix)
    template = files(__package__).joinpath("scorer.c").read_text("ascii")
    template = template.replace("submerge_", f"{prefix}_").replace("SUBMERGE_", writer.upper)
    parts = {
        "about": writer.about(),
        "constants": writer.constants(),
        "data": writer.data(),
        "golden": writer.golden(golden_rows(recipe, single=single)),
    }
    return re.sub(r"@(\w+)@", lambda found: parts[found[1]], template)


class _CWriter:
    def __init__(self, recipe: Recipe, single: bool, prefix: str) -> None:
        self.upper = f"{prefix.upper()}_"
        self._recipe, self._single, self._prefix = recipe, single, prefix
        self._to = CNumbers(single)
        self._scores = recipe.computed

    def about(self) -> str:
        lines = [
            *about_lines(self._recipe),
            "",
            "Other files include it for its declarations:",
            "",
            f"    #define {self.upper}DECLARATIONS",
            '    #include "this_file.c"',
        ]
        return "\n".join(["/*", *(f" * {line}".rstrip() for line in lines), " */"])

    def constants(self) -> str:
        recipe, alarm = self._recipe, self._recipe.alarm
        defined: dict[str, object] = {
            "FLOAT": int(self._single),
            "CHANNELS": recipe.dim,
            "SCORES": len(self._scores),
            **{kind.upper(): i for i, kind in enumerate(self._scores)},
            "STATISTICS": len(alarm.kinds),
            **{f"STATISTIC_{kind.upper()}": i for i, kind in enumerate(alarm.kinds)},
            "WINDOWS": len(alarm.windows),
            "OF": alarm.of,
            "AFTER": alarm.after,
            "ENDS_AFTER": alarm.ends_after,
        }
        places = {f"AT_{name}": i for i, name in enumerate(identifiers(recipe.channels))}
        return "\n".join(
            [
                f"typedef {'float' if self._single else 'double'} {self._prefix}_real;",
                "",
                self._defines(defined),
                "",
                "/* The place of each channel in a row. */",
                self._defines(places),
            ]
        )

    def data(self) -> str:
        recipe, alarm, number = self._recipe, self._recipe.alarm, self._to.number
        widest = max(recipe.loadings.shape[1], recipe.basis.shape[1])
        defined: dict[str, object] = {
            "MAX": "FLT_MAX" if self._single else "DBL_MAX",
            "LARGEST": number(recipe.largest),
            "EXCESS": number(recipe.excess),
            "COMPLETE": int(recipe.complete),
            "FACTORS": recipe.loadings.shape[1],
            "WIDEST": widest,
            "STEPS": self._most_steps(),
            "REFINED": len(self._refined()),
        }
        if alarm.averages:
            defined |= {"WEIGHT": number(alarm.weight), "KEPT": number(1 - alarm.weight)}
            defined["HELD"] = number(alarm.held)
            defined["AVERAGED"] = alarm.kinds.index(alarm.averages[0])
        if {"spe", "t2"} & {*recipe.scores}:
            defined["DIRECTIONS"] = recipe.basis.shape[1]
        arrays = self._refined_rows()
        arrays += [self._array(name, values) for name, values in self._arrays().items()]
        return "\n\n".join([self._defines(defined), *arrays, self._limits(), self._names()])

    def golden(self, golden: GoldenRows) -> str:
        rows = [f"    {{{', '.join(map(self._to.reading, row))}}}" for row in golden.rows.tolist()]
        results = [f"    {self._result(each)}" for each in golden.results]
        n, name = len(rows), self._prefix
        real = f"static const {name}_real {name}_golden_rows[{n}][{self.upper}CHANNELS]"
        kept = f"static const {name}_result {name}_golden_results[{n}]"
        near, floor = self._to.number(golden.near), self._to.number(golden.floor)
        parts = [
            self._defines({"GOLDEN": n, "NEAR": near, "FLOOR": floor}),
            f"{real} = {{\n" + ",\n".join(rows) + "\n};",
            f"{kept} = {{\n" + ",\n".join(results) + "\n};",
        ]
        return "\n\n".join(parts)

    def _defines(self, values: Mapping[str, object]) -> str:
        return "\n".join(f"#define {self.upper}{name} {each}" for name, each in values.items())

    def _arrays(self) -> dict[str, Array]:
        recipe = self._recipe
        offset, mean = recipe.offset, recipe.mean
        if self._single:
            # Together they are the center in units, to more digits than one float has.
            center = offset + recipe.scale * mean
            offset = center.astype(np.float32).astype(np.float64)
            mean = center - offset
            if not recipe.scale.astype(np.float32).all():
                raise UsageError(
                    "the model holds a scale that does not fit float: leave --float32 out"
                )
        found = {
            "offset": offset,
            "scale": recipe.scale,
            "mean": mean,
            "inverse_roots": recipe.inverse_roots,
            "loadings": recipe.loadings,
            "gains": recipe.gains,
            "error_weights": recipe.error_weights,
            "blame_weights": recipe.blame_weights,
        }
        if recipe.channel_weights is not None and "channel" in self._scores:
            found["channel_weights"] = recipe.channel_weights
        if {"spe", "t2"} & {*recipe.scores}:
            found["basis"] = recipe.basis
        if "t2" in recipe.scores:
            found["t2_weights"] = recipe.t2_weights
        return found

    def _refined(self) -> list[int]:
        """Return the channels that float needs a row of their own for."""
        own = 1 / (self._recipe.error_weights * self._recipe.inverse_roots)
        return np.flatnonzero(own < OWN).tolist() if self._single else []

    def _refined_rows(self) -> list[str]:
        which, recipe, upper, name = self._refined(), self._recipe, self.upper, self._prefix
        if not which:
            return []
        rows = np.eye(recipe.dim) - (recipe.loadings * recipe.gains) @ recipe.loadings.T
        real = f"static const {name}_real {name}_refined_rows[{upper}REFINED][{upper}CHANNELS]"
        table = ",\n".join(f"    {self._to.row(rows[each])}" for each in which)
        places = f"static const int {name}_refined[{upper}REFINED]"
        return [f"{places} = {{{', '.join(map(str, which))}}};", f"{real} = {{\n{table}\n}};"]

    def _array(self, name: str, values: Array, size: str = "", kind: str = "static ") -> str:
        declared = f"{kind}const {self._prefix}_real {self._prefix}_{name}[{size or values.size}]"
        return self._to.array(declared, values)

    def _most_steps(self) -> int:
        return max([1, *(len(each.values) for each in self._recipe.limits.values())])

    def _limits(self) -> str:
        alarm, upper, name = self._recipe.alarm, self.upper, self._prefix
        size = f"{upper}STATISTICS + 1"
        limits = self._array("limits", np.array([*alarm.limits.values(), 0.0]), size, "")
        calm = self._array("calm", np.array([*alarm.calm.values(), 0.0]), size)
        places = ", ".join(str(self._scores.index(kind)) for kind in alarm.windows) or "0"
        windows = f"static const unsigned char {name}_window_scores[{upper}WINDOWS + 1]"
        tables = (self._steps("shares", 0), self._steps("values", 1))
        return "\n\n".join([limits, calm, *tables, f"{windows} = {{{places}}};"])

    def _steps(self, what: str, field: int) -> str:
        """Return a table of the shares of normal rows, or of the scores that they are below."""
        rows = []
        for kind in self._scores:
            known = self._recipe.limits.get(kind)
            each = [] if known is None else list(map(self._to.number, known[field].tolist()))
            # No score is above the largest number.
            each += [f"{self.upper}MAX"] * (self._most_steps() - len(each))
            rows.append(f"    {{{', '.join(each)}}}")
        size = f"[{self.upper}SCORES][{self.upper}STEPS]"
        declared = f"static const {self._prefix}_real {self._prefix}_step_{what}{size}"
        return f"{declared} = {{\n" + ",\n".join(rows) + "\n};"

    def _names(self) -> str:
        names = ",\n    ".join(map(c_string, self._recipe.channels))
        declared = f"const char *const {self._prefix}_channels[{self.upper}CHANNELS]"
        return f"{declared} = {{\n    {names}\n}};"

    def _result(self, result: ExportResult) -> str:
        kinds, row = self._recipe.alarm.kinds, self._to.row
        bits = sum(1 << i for i, kind in enumerate(kinds) if kind in result.over)
        share = float(result.shares[result.blame]) if result.blame >= 0 else 0.0
        scores = [result.scores.get(kind, 0.0) for kind in self._scores]
        passed = [result.passed.get(kind, 0.0) for kind in self._scores]
        statistics = [*(result.statistics.get(kind, 0.0) for kind in kinds), 0.0]
        first = f"{result.status}, {int(result.alarm)}, {bits}u, {result.blame}"
        numbers = f"{self._to.number(share)}, {self._to.number(result.deviation)}"
        return f"{{{first}, {numbers}, {row(scores)}, {row(passed)}, {row(statistics)}}}"


def _write(recipe: Recipe, options: ExportOptions) -> bytes:
    return c_source(recipe, single=options.single, prefix=options.prefix).encode("ascii")


WRITER = ExportWriter(_write, frozenset({"single", "prefix"}))
