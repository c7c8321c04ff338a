"""Findings: what a look at something found, in a line, and what to do about it."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Literal, NamedTuple

from submerge_fleet.console.admin_client import printable

State = Literal["ok", "warning", "fails"]

WIDTH = 80
INDENT = 21

DAY_S = 86400.0


class Finding(NamedTuple):
    """What one look found.

    Attributes
    ----------
    check : str
        At what: one word.
    state : {"ok", "warning", "fails"}
        "fails" keeps the program from its work; "warning" does not, or not yet.
    says : str
        What is so, in a line.
    mend : str
        What to do; nothing where all is well.
    """

    check: str
    state: State
    message: str
    hint: str = ""


def ok(check: str, message: str) -> Finding:
    """Return that all is well."""
    return Finding(check, "ok", message)


def warning(check: str, message: str, hint: str) -> Finding:
    """Return what somebody should look into."""
    return Finding(check, "warning", message, hint)


def fails(check: str, message: str, hint: str) -> Finding:
    """Return what keeps the program from its work."""
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
    """Return how it went as a whole."""
    failed, warned = (
        sum(each.state == state for each in findings) for state in ("fails", "warning")
    )
    said = [f"{failed} fail{'s' * (failed == 1)}"] if failed else []
    said += [f"{warned} warning{'s' * (warned > 1)}"] if warned else []
    looks = f"{len(findings)} look{'s' * (len(findings) != 1)}"
    return f"{looks}: {', '.join(said) or 'all fine'}"


def _wrapped(text: str) -> list[str]:
    # Foreign words, of a certificate or a broker, could have a terminal obey them.
    return textwrap.wrap(printable(" ".join(text.split())), WIDTH - INDENT - 3) or [""]
