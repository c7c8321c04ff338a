"""Parts of SQL text: numbers, long sums, the largest of many columns, and queries on queries.

They are written so that SQLite 3.25, PostgreSQL 12 and DuckDB take them alike:

1. A number always has an exponent: then it is a double in each of them, and no decimal.
2. A sum of many terms is bracketed in groups: SQLite takes expressions of a depth of 1,000.
3. The largest of many is found in rounds, because no function for it is in all of them.
4. A query has a window function in it: otherwise a database may put the text of each of its columns
   wherever the column is used, and the text of a model would grow by powers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from submerge._linalg import Array

AT_ONCE = 64
"""Terms of a bracket."""

OF_A_ROUND = 4
"""Columns of which a round finds the largest."""

NOTHING = 1e-30
"""Least size of a coefficient: a smaller one moves no score by more than 1e-18. PostgreSQL refuses
products that underflow."""


MANY = 8000
"""Weights from which they are written as results of a condition. SQLite compares each constant with
all others, so that the time to prepare a query grows with their square; these it does not take for
constants. Rows are a quarter slower by that."""

PREFIX = "submerge_"
"""Of the names of queries: SQLite takes a table of the same name for the query."""


AMONG = "PARTITION BY good ORDER BY n"
"""A window of rows that have scores (or of those that have none), in the order of time."""

BEFORE = f"{AMONG} ROWS UNBOUNDED PRECEDING"


def lag(column: str, rows: int) -> str:
    """Return the name of a column's value so many rows before."""
    return f"{column}_{rows}"


def number(value: float) -> str:
    """Return a finite number as a literal that is read as the same double."""
    text = repr(float(value))
    return text if "e" in text else f"{text}e0"


def total(terms: Sequence[str]) -> str:
    """Return the sum of terms; `0e0` for none."""
    if not terms:
        return "0e0"
    if len(terms) <= AT_ONCE:
        return "+".join(terms)
    groups = (terms[i : i + AT_ONCE] for i in range(0, len(terms), AT_ONCE))
    return total([f"({'+'.join(each)})" for each in groups])


def weighted(weights: Array, columns: Sequence[str], *, many: bool = False) -> str:
    """Return the weighted sum of columns; those that weigh next to nothing are left out.

    many : whether the whole text has more than `MANY` such weights
    """
    term = "{1}*CASE WHEN {1} IS NOT NULL THEN {0} END" if many else "{0}*{1}"
    pairs = zip(weights.tolist(), columns, strict=True)
    return total([term.format(number(weight), each) for weight, each in pairs
                  if abs(weight) >= NOTHING])  # fmt: skip


def numbered(letter: str, n: int) -> tuple[str, ...]:
    """Return n names of columns: a letter and a number."""
    return tuple(f"{letter}{i}" for i in range(n))


@dataclass(frozen=True, slots=True)
class Query:
    """A named query of `WITH`, on the one before it.

    passed : Columns of the one before that go on as they are; `n`, the row's number, always does.
    """

    name: str
    passed: tuple[str, ...]
    made: Mapping[str, str]

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns, without `n`."""
        return (*self.passed, *self.made)

    def text(self, before: str) -> str:
        """Return it as SQL, on the query `before`."""
        made = [f"{expression} AS {name}" for name, expression in self.made.items()]
        over = any(" OVER (" in expression for expression in self.made.values())
        n = "n" if over else "row_number() OVER (ORDER BY n) AS n"
        columns = ",\n".join([n, *self.passed, *made])
        return f"{PREFIX}{self.name} AS (\nSELECT {columns}\nFROM {PREFIX}{before})"


def chained(first: str, queries: Sequence[Query]) -> str:
    """Return queries as the parts of one `WITH`, each on the one before; `first` is there."""
    names = [first, *(each.name for each in queries)]
    return ",\n".join(each.text(before) for each, before in zip(queries, names, strict=False))


Contest = Sequence[tuple[str, ...]]
"""Of each entrant the column that is compared, and what goes with it."""


def rounds(
    contests: Mapping[str, Contest], passed: tuple[str, ...]
) -> tuple[list[Query], dict[str, tuple[str, ...]]]:
    """Find the largest of many columns, the first of equals.

    passed : Columns that go on as they are.

    Returns
    -------
    list of Query
    dict of letter to tuple of str
        Of each contest the columns of its winner, after these queries.
    """
    queries: list[Query] = []
    left = {letter: list(contest) for letter, contest in contests.items()}
    while any(len(contest) > 1 for contest in left.values()):
        made: dict[str, str] = {}
        for letter, contest in left.items():
            groups = [contest[i : i + OF_A_ROUND] for i in range(0, len(contest), OF_A_ROUND)]
            winners = []
            for i, group in enumerate(groups):
                names = tuple(f"{letter}{len(queries)}_{i}_{j}" for j in range(len(group[0])))
                compared = [each[0] for each in group]
                for name, results in zip(names, zip(*group, strict=True), strict=True):
                    made[name] = of_largest(compared, results)
                winners.append(names)
            left[letter] = winners
        queries.append(Query(f"round{len(queries)}", passed, made))
    return queries, {letter: contest[0] for letter, contest in left.items()}


def of_largest(compared: Sequence[str], results: Sequence[str]) -> str:
    """Return the result that goes with the largest column, the first of equals."""
    cases = []
    for i, column in enumerate(compared[:-1]):
        above = " AND ".join(f"{column}>={other}" for other in compared[i + 1 :])
        cases.append(f"WHEN {above} THEN {results[i]}")
    return f"CASE {' '.join(cases)} ELSE {results[-1]} END" if cases else results[-1]
