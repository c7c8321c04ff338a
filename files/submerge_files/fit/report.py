"""What a person wants to know of a history that was learnt."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

from submerge.client.alarms.limits import AlarmLimits
from submerge.history.detection import watching
from submerge.history.fit import Fitted
from submerge.history.folds import HistorySpan
from submerge.pca.own_scatter import OwnScatter
from submerge_client.datasets.table import counted
from submerge_files.console.units import in_words, moment, name_text, printable, size_of
from submerge_files.model_file import learnt_of
from submerge_files.reader import Recordings

MOST_SPANS = 6  # spans that were left out, which the report lists

FEW_SPANS, MOST_TIMES = 3, 1000
"""Spans of rows that raised the limits, and how many times, at most, as the report says it."""


def limits_of(fitted: Fitted) -> AlarmLimits:
    """Return the alarm limits at the default rate of false alarms."""
    return watching(learnt_of(fitted)).limits


def as_object(fitted: Fitted, recordings: Recordings, path: Path, size: int) -> dict[str, Any]:
    """Return the report as JSON holds it; times are seconds since 1970."""
    first, folds, model = fitted.first, fitted.folds, fitted.model
    limits = limits_of(fitted)
    times, raising = fitted.raised(limits)
    return {
        "rows": first.rows,
        "learnt": model.counts.learnt,
        "left_out": dict(first.left_out)
        | {"unlike the others": sum(span.rows for span in folds.deviant)},
        "spans_left_out": [_span_object(fitted, span) for span in folds.deviant],
        "gaps": first.gaps,
        "period_s": first.period_s,
        "first": _known(first.seen.first),
        "last": _known(first.seen.last),
        "channels": list(recordings.names),
        "constant": list(constant(fitted)),
        "machines": {
            name: {"kappa": each.kappa, "fleet_share": each.share, "unlike": each.unlike}
            for name, each in _scatters(fitted)
        },
        "rank": folds.rank,
        "explained": fitted.explained,
        "block_s": model.block_s,
        "promised": limits.promised,
        "provisional_s": limits.provisional_s,
        "counted": limits.counted,
        "times_usual": times,
        "raised_by": [_span_object(fitted, span) for span in raising],
        "model": str(path),
        "bytes": size,
    }


def as_text(fitted: Fitted, recordings: Recordings, path: Path, size: int) -> list[tuple[str, str]]:
    first, folds = fitted.first, fitted.folds
    files = counted(len(recordings.files), "file")
    lines = [("rows", f"{first.rows:,} in {files}{_span(fitted)}")]
    learnt = [f"{fitted.model.counts.learnt:,} rows"]
    learnt += [f"{n:,} not ({why})" for why, n in sorted(first.left_out.items())]
    if first.gaps:
        learnt.append(f"{first.gaps:,} gaps, learnt as what they hide on average")
    lines.append(("learnt", "; ".join(learnt)))
    lines += _left_out(fitted)
    flat = constant(fitted)
    lines.append(
        (
            "channels",
            f"{len(recordings.names)}"
            + (f"; constant: {', '.join(map(name_text, flat))}" if flat else ""),
        )
    )
    directions = counted(folds.rank, "direction")
    lines.append(("explained", f"{fitted.explained:.0%} of the variance by {directions}"))
    lines += _machines(fitted)
    lines += _limits(fitted)
    lines.append(("model", f"{path}, {size_of(size)}"))
    return lines


def constant(fitted: Fitted) -> tuple[str, ...]:
    """Return the names of channels that did not vary."""
    variance = fitted.folds.moments.variance
    names = fitted.folds.schema.names
    return tuple(name for name, each in zip(names, variance.tolist(), strict=True) if not each)


def _scatters(fitted: Fitted) -> list[tuple[str, OwnScatter]]:
    """Return how each machine varies, the most unlike the fleet first."""
    known = [(name, state.scatter) for name, state in fitted.states.items()]
    both = [(name, each) for name, each in known if each is not None]
    return sorted(both, key=lambda named: (-named[1].unlike, named[0]))


def _machines(fitted: Fitted) -> list[tuple[str, str]]:
    found = _scatters(fitted)
    if not found:
        return []
    worth = sorted(each.kappa for _, each in found)
    most = f"{worth[0]:,.0f}" + (f" to {worth[-1]:,.0f}" if worth[-1] > worth[0] else "")
    text = f"{len(found)}, each judged by its own rows and the fleet's as {most} more"
    text += f"; most unlike the others: {name_text(found[0][0])}"
    return [("machines", text)]


def _span(fitted: Fitted) -> str:
    if not fitted.first.period_s:
        return ", without times"
    begin, end = map(moment, fitted.first.seen)
    return f", {begin} to {end}, one every {in_words(fitted.first.period_s)}"


def _span_object(fitted: Fitted, span: HistorySpan) -> dict[str, Any]:
    found: dict[str, Any] = {
        "first": _known(span.first),
        "last": _known(span.last),
        "rows": span.rows,
        "drop": span.drop,
        "machine": span.machine,
    }
    if rows := _numbers(fitted, span):
        found |= {"file": rows[0], "from_row": rows[1], "to_row": rows[2]}
    return found


def _numbers(fitted: Fitted, span: HistorySpan) -> tuple[str, int, int] | None:
    """Return the file of rows without times, and their first and last number in it."""
    laid = fitted.first.laid
    if laid.period_s or laid.grid.runs:
        return None
    unit = int(laid.grid.unit)
    return laid.files[span.begin.run], span.begin.number * unit + 1, (span.end.number + 1) * unit


def _place(fitted: Fitted, span: HistorySpan) -> str:
    if fitted.first.period_s:
        machines = fitted.first.machines
        whose = f"{printable(machines[span.machine])}, " if len(machines) > 1 else ""
        return f"{whose}{moment(span.first)} to {moment(span.last)}"
    if rows := _numbers(fitted, span):
        file, begin, end = rows
        return f"rows {begin:,} to {min(end, fitted.first.rows):,}" + f" of {file}" * bool(file)
    return "somewhere"


def _known(seconds: float) -> float | None:
    """Return a time as JSON holds it: null without times."""
    return seconds if math.isfinite(seconds) else None


def _left_out(fitted: Fitted) -> list[tuple[str, str]]:
    """Return a line for each span that is unlike all others."""
    spans, lines = fitted.folds.deviant, []
    for i, span in enumerate(spans[:MOST_SPANS]):
        where = _place(fitted, span)
        text = f"{where}, {counted(span.rows, 'row')} unlike all others; --keep-all learns them"
        lines.append(("left out" if i == 0 else "", text))
    if len(spans) > MOST_SPANS:
        lines.append(("", f"and {counted(len(spans) - MOST_SPANS, 'more span')}"))
    return lines


def _limits(fitted: Fitted) -> list[tuple[str, str]]:
    """Return the rate that limits keep, and which rows made them high."""
    limits = limits_of(fitted)
    rate = rate_of(limits, fitted.first.period_s)
    if limits.known:
        rate += f" ({'counted' if limits.counted else 'extrapolated'})"
    times, spans = fitted.raised(limits)
    if not spans:
        return [("limits", rate)]
    many = f"{times:,.0f}" if times < MOST_TIMES else f"over {MOST_TIMES:,}"
    some = "; ".join(_place(fitted, span) for span in spans[:FEW_SPANS])
    rest = len(spans) - FEW_SPANS
    more = f" and {counted(rest, 'more span')}" if rest > 0 else ""
    cure = "leave them out (--exclude)" if fitted.first.period_s else "leave them out"
    high = f"high: {many} times the usual highest score, by {some}{more}"
    return [("limits", rate), ("", f"{high}; if those were faults, {cure}")]


def rate_of(limits: AlarmLimits, period_s: float) -> str:
    if limits.promised:
        return "at most 1 false alarm per week"
    if not limits.known:
        return "none: too few rows"
    rows = round(limits.provisional_s / (period_s or 1.0))
    return f"provisional: about 1 false alarm in {rows:,} rows; more rows make it rarer"
