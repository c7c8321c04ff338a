"""What `alarms.py` prints: rates and faults of plants over seeds, and beside former runs.

An outcome is what `alarms_judged.judged` returns, as JSON holds it.
"""

import json
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from alarms_judged import OF_PROCESS
from report import Table

Outcomes = Sequence[dict[str, Any]]

DELAYS = 2 / 3
"""The median delay is to be at most this share of the former one."""

RATIOS = (0.5, 1.5)
NAMED = 0.95


def former(paths: Iterable[Path]) -> list[dict[str, Any]]:
    """Return outcomes of former runs, from files or from folders of them."""
    files = [file for path in paths for file in (sorted(path.glob("*.json")) or [path])]
    return [run for file in files for run in json.loads(file.read_text())["runs"]]


def tables(runs: Outcomes) -> list[Table]:
    """Return what there is to print: rates and faults, by plant."""
    return [
        each
        for name in dict.fromkeys(run["plant"] for run in runs)
        for each in (_rates(name, _of(name, runs)), _faults(name, _of(name, runs)))
    ]


def against(runs: Outcomes, before: Outcomes) -> list[Table]:
    """Return a comparison with former runs of the same plants, and whether it is what is asked."""
    printed, asked = [], []
    for name in dict.fromkeys(run["plant"] for run in runs):
        now, then = _of(name, runs), _of(name, before)
        if not then:
            continue
        rows: list[tuple[object, ...]] = []
        worse: list[str] = []
        for kind in (*_kinds(now), "all"):
            new, old = _found(now, kind), _found(then, kind)
            if new and old:
                worse += [kind] if _share(new) < _share(old) else []
                delays = _median(new), _median(old)
                rows.append(
                    (kind, len(old), _share(old), len(new), _share(new), delays[1], delays[0],
                     delays[0] / delays[1] if delays[1] else None)
                )  # fmt: skip
        columns = {"kind": "", "before": "d", "found before": ".0%", "now": "d", "found": ".0%",
                   "median h before": ".2f", "median h": ".2f", "ratio": ".2f"}  # fmt: skip
        notes = "A fault that was not found counts as infinitely late."
        printed.append(Table(f"{name}: before and now", columns, rows, notes))
        ratio, named, paired = _ratio(now), _named(now, "first"), _paired(now, then)
        total = rows[-1]
        asked += [
            (f"{name}: realised / promised", f"{ratio:.2f}", "0.5 to 1.5",
             RATIOS[0] <= ratio <= RATIOS[1]),
            (f"{name}: kinds of which fewer are found", ", ".join(worse) or "none", "none",
             not worse),
            (f"{name}: median delay, by the former one",
             "-" if total[-1] is None else f"{total[-1]:.2f}", "0.67",
             total[-1] is not None and float(str(total[-1])) <= DELAYS),
            (f"{name}: median of each fault's delay, by its former one",
             "-" if paired is None else f"{paired:.2f}", "0.67",
             paired is not None and paired <= DELAYS),
            (f"{name}: named at once", f"{named:.0%}", "95%", named >= NAMED),
        ]  # fmt: skip
    held: list[tuple[object, ...]] = [(*most, "yes" if good else "no") for *most, good in asked]
    return [*printed, Table("What is asked", dict.fromkeys(("", "is", "asked", "met"), ""), held)]


def _rates(name: str, runs: Outcomes) -> Table:
    rows: list[tuple[object, ...]] = []
    for run in (*runs, None) if len(runs) > 1 else runs:
        some = runs if run is None else [run]
        weeks, false = sum(each["quiet_weeks"] for each in some), _false(some)
        rows.append(
            (
                "all" if run is None else str(run.get("seed", "")),
                some[0]["promised"],
                len(false) / weeks if weeks else 0.0,
                _ratio(some),
                len(false),
                weeks,
                float(np.mean([each["armed_h"] for each in some])),
                sum(each.get("stated", 0.0) for each in some),
                sum(each.get("provisional", 0) for each in some),
                sum(each.get("repairs", 0) for each in some),
                _counted(alarm["cause"] for _, _, alarm in false),
            )
        )
    columns = {"seed": "", "promised": ".2f", "realised": ".2f", "ratio": ".2f", "false": "d",
               "weeks": ".1f", "armed after h": ".0f", "stated by provisional limits": ".1f",
               "raised by them": "d", "at repairs": "d", "by": ""}  # fmt: skip
    return Table(f"{name}: false alarms a node and week", columns, rows)


def _faults(name: str, runs: Outcomes) -> Table:
    rows: list[tuple[object, ...]] = []
    for kind in (*_kinds(runs), "all"):
        of = _found(runs, kind)
        seen = [found for found in of if found["delay_h"] is not None]
        delays = [found["delay_h"] for found in seen]
        rows.append(
            (
                kind,
                len(of),
                len(seen),
                float(np.median(delays)) if seen else None,
                max(delays) if seen else None,
                np.mean([found["first"] for found in seen]) if seen else None,
                np.mean([found["last"] for found in seen]) if seen else None,
                np.mean([_is_told(found) for found in seen]) if seen else None,
                np.mean([not found.get("looks") for found in seen]) if seen else None,
                _counted(found["cause"] for found in seen),
            )
        )
    columns = {"kind": "", "injected": "d", "found": "d", "delay h": ".1f", "worst h": ".1f",
               "named at once": ".0%", "named": ".0%", "looks right": ".0%",
               "cannot be told": ".0%", "by": ""}  # fmt: skip
    return Table(f"{name}: faults", columns, rows)


def _is_told(found: dict[str, Any]) -> bool:
    """Whether an alarm looks like what its fault is of: a sensor, or the process."""
    is_process = found["fault"]["kind"] in OF_PROCESS
    return bool(found.get("looks") == ("process" if is_process else "sensor"))


def _of(name: str, runs: Outcomes) -> list[dict[str, Any]]:
    return [run for run in runs if run["plant"] == name]


def _kinds(runs: Outcomes) -> list[str]:
    return sorted({found["fault"]["kind"] for run in runs for found in run["found"]})


def _found(runs: Outcomes, kind: str) -> list[dict[str, Any]]:
    every = [found for run in runs for found in run["found"]]
    return [found for found in every if kind in ("all", found["fault"]["kind"])]


def _false(runs: Outcomes) -> list[Any]:
    return [each for run in runs for each in run["false"]]


def _ratio(runs: Outcomes) -> float:
    allowed = sum(run["quiet_weeks"] * run["promised"] for run in runs)
    return len(_false(runs)) / allowed if allowed else 0.0


def _share(found: Outcomes) -> float:
    return float(np.mean([each["delay_h"] is not None for each in found]))


def _named(runs: Outcomes, when: str) -> float:
    seen = [found[when] for found in _found(runs, "all") if found["delay_h"] is not None]
    return float(np.mean(seen)) if seen else 0.0


def _median(found: Outcomes) -> float:
    delays = [np.inf if each["delay_h"] is None else each["delay_h"] for each in found]
    return float(np.median(delays))


def _paired(now: Outcomes, then: Outcomes) -> float | None:
    """Return the median ratio of delays, over the faults of both that either found."""
    before = {str(found["fault"]): _median([found]) for found in _found(then, "all")}
    pairs = [
        (_median([found]), before[fault])
        for found in _found(now, "all")
        if (fault := str(found["fault"])) in before
    ]
    ratios = [
        1.0 if new == old else new / old if old else np.inf
        for new, old in pairs
        if min(new, old) < np.inf
    ]
    return float(np.median(ratios)) if ratios else None


def _counted(causes: Iterable[str]) -> str:
    return ", ".join(f"{cause} {n}" for cause, n in Counter(causes).items())
