"""A claim: a figure of ours beside those of others, as cells of tables that runs wrote.

    Claim("accuracy", "Light, rank 10", ..., ours=Pick(...), peers=(Pick(...),))

A pick names a run, a table by the beginning of its title, rows by what is in their columns, and
the column of the figure. A table or a row that is not there is an error: a claim never loses its
rival in silence.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

Records = Mapping[str, dict[str, Any]]
"""What runs wrote, by name."""

EVEN = 1e-4
"""Ratios within so much of 1 are a draw."""

ONES: dict[str, Callable[[list[float]], float]] = {
    "most": max,
    "least": min,
    "sum": sum,
    "last": lambda figures: figures[-1],
}


@dataclass(frozen=True)
class Pick:
    """Figures of a table.

    run, table, column : `table`: the beginning of the table's title, of one table alone.
    where : By column, what rows hold: a value, or a tuple of values.
    named : What the figure is of; or "{column}", to take it from the rows.
    one : What is taken of all rows; None: each row is a figure of its own.
    but : Beginnings of names that are left out.
    within : Only rows that hold at most its figure in its column; there may be none.
    """

    run: str
    table: str
    column: str
    where: Mapping[str, object]
    named: str
    one: Literal["most", "least", "sum", "last"] | None = None
    but: tuple[str, ...] = ()
    within: "Pick | None" = None

    def figures(self, records: Records) -> list[tuple[str, float]]:
        """Return (name, figure) pairs; cells without a figure are left out."""
        rows = self._rows(records[self.run])
        if self.within is not None:
            most = self.within.figure(records)
            rows = [row for row in rows if row[self.within.column] <= most]
        named = [(_name(self.named, row), row[self.column]) for row in rows]
        found = [
            (name, float(value))
            for name, value in named
            if value is not None and not any(name.startswith(each) for each in self.but)
        ]
        if not found and self.within is None:
            raise LookupError(f"expected a figure, got none: {self}")
        if self.one is None:
            return found
        return [(self.named, ONES[self.one]([value for _, value in found]))]

    def figure(self, records: Records) -> float:
        """Return the figure of a pick that has one."""
        found = self.figures(records)
        if len(found) != 1:
            raise LookupError(f"expected one figure, got {len(found)}: {self}")
        return found[0][1]

    def _rows(self, made: dict[str, Any]) -> list[dict[str, Any]]:
        """Return rows that match, by column; a first cell without text is that of the row above."""
        tables = [each for each in made["tables"] if each["title"].startswith(self.table)]
        if len(tables) != 1:
            titles = ", ".join(each["title"] for each in made["tables"])
            raise LookupError(f"expected one table {self.table!r} of {self.run}, got: {titles}")
        columns, above, rows = list(tables[0]["columns"]), None, []
        for cells in tables[0]["rows"]:
            row = dict(zip(columns, cells, strict=True))
            above = row[columns[0]] = row[columns[0]] if row[columns[0]] != "" else above
            rows.append(row)
        return [row for row in rows if all(_holds(row[key], at) for key, at in self.where.items())]


@dataclass(frozen=True)
class Claim:
    """What is claimed.

    section, name : The page's section; a short name, of the picture.
    what, spec : What the figure is, with its unit; its format.
    peers : The best of all their figures is the peer. None: nothing else measures this.
    asked : What our figure is not to exceed, where there is no peer.
    aside : The peer is no rival, but another way of ours or the rows themselves: README has none.
    """

    section: str
    name: str
    what: str
    spec: str
    better: Literal["less", "more"]
    ours: Pick
    peers: tuple[Pick, ...] = ()
    asked: "float | Pick | None" = None
    aside: bool = False

    @property
    def runs(self) -> tuple[str, ...]:
        """Names of the runs that it rests on, ours first."""
        return tuple(dict.fromkeys((self.ours.run, *(pick.run for pick in self.peers))))

    @property
    def promise(self) -> bool:
        """Whether our figure stands beside what is asked of it, and not beside a peer."""
        return self.asked is not None


@dataclass(frozen=True)
class Shown:
    """A claim with its figures.

    peer : the best peer, or what stands in its place
    theirs : its figure, or what is asked; None without
    """

    claim: Claim
    ours: float
    peer: str
    theirs: float | None

    @cached_property
    def ratio(self) -> float | None:
        """How many times better ours is: below 1 the peer wins. None where a figure is zero."""
        if self.theirs is None:
            return None
        better, worse = self.ours, self.theirs
        if self.claim.better == "more":
            better, worse = worse, better
        return worse / better if better > 0 and worse > 0 else None

    @property
    def verdict(self) -> str:
        """Return who wins, in words; empty without a peer."""
        if self.theirs is None:
            return ""
        if self.claim.promise:
            return "kept" if self.ours <= self.theirs else "**not kept**"
        if abs(self.ours - self.theirs) <= EVEN * max(abs(self.ours), abs(self.theirs)):
            return "even"
        ahead = (self.ours < self.theirs) == (self.claim.better == "less")
        return "ours" if ahead else "**the rival wins**"


def shown(claim: Claim, records: Records) -> Shown:
    """Look a claim's figures up."""
    ours = claim.ours.figure(records)
    if claim.asked is not None:
        limit = claim.asked
        asked = limit.figure(records) if isinstance(limit, Pick) else limit
        return Shown(claim, ours, "what is asked", asked)
    found = [each for pick in claim.peers for each in pick.figures(records)]
    if not found:
        return Shown(claim, ours, "-", None)
    best = min if claim.better == "less" else max
    peer, theirs = best(found, key=lambda each: each[1])
    return Shown(claim, ours, peer, theirs)


def _name(pattern: str, row: Mapping[str, object]) -> str:
    """Fill columns in; "{}" is the first, which may have no heading."""
    return pattern.format(next(iter(row.values())), **{key: row[key] for key in row if key})


def _holds(cell: object, wanted: object) -> bool:
    return cell in wanted if isinstance(wanted, tuple) else cell == wanted
