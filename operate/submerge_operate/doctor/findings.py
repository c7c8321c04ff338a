"""Findings: results of checks, a line each, with hints."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Literal, NamedTuple

from submerge_files.console.units import printable

State = Literal["ok", "warning", "fails"]

WIDTH = 80
INDENT = 21

DAY_S = 86400.0


class Finding(NamedTuple):
    """The result of a check.

    state : With "fails" the program cannot work; with "warning" it can, for now.
    message, hint : What was found, in a line; what to do, empty if all is well.
    """

    check: str
    state: State
    message: str
    hint: str = ""


def ok(check: str, message: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(check, "ok", message)


def warning(check: str, message: str, hint: str) -> Finding:
    """Return a finding to look into."""
    return Finding(check, "warning", message, hint)


def fails(check: str, message: str, hint: str) -> Finding:
    """Return a finding that keeps the program from working."""
    return Finding(check, "fails", message, hint)


def text_of(finding: Finding) -> str:
    """Return a finding for a terminal of 80 columns."""
    lines = _wrapped(finding.message)
    if finding.hint:
        lines += [
            ("-> " if i == 0 else "   ") + line for i, line in enumerate(_wrapped(finding.hint))
        ]
    head = f"{finding.state:<8} {finding.check:<12}"
    return "\n".join(f"{head if i == 0 else '':<{INDENT}}{line}" for i, line in enumerate(lines))


def summary_of(findings: Sequence[Finding]) -> str:
    """Return the number of checks, failures and warnings."""
    failed, warned = (
        sum(each.state == state for each in findings) for state in ("fails", "warning")
    )
    counts = [f"{failed} fail{'s' * (failed == 1)}"] if failed else []
    counts += [f"{warned} warning{'s' * (warned > 1)}"] if warned else []
    checks = f"{len(findings)} check{'s' * (len(findings) != 1)}"
    return f"{checks}: {', '.join(counts) or 'all fine'}"


def _wrapped(text: str) -> list[str]:
    # Text of a certificate or a broker could contain terminal commands.
    return textwrap.wrap(printable(" ".join(text.split())), WIDTH - INDENT - 3) or [""]
