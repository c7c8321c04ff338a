"""FormerSchemas: schemas that a group had before, and sums under one (docs/decisions/0045)."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from typing import Any

from submerge.aggregator.rows.pool import Row, Sealed
from submerge.aggregator.rows.refusals import SchemaOf
from submerge.protocol.machine import Key, Records
from submerge.protocol.messages import Report
from submerge.schema import Schema

MOST = 64  # schemas that are remembered


class FormerSchemas:
    """The former schemas of one group; `changes` takes records to keep, None to delete."""

    def __init__(self, group: str, changes: dict[Key, Any]) -> None:
        self._group, self._changes = group, changes
        self._schemas: dict[int, Schema] = {}

    def load(self, records: Records) -> None:
        for key, text in records.items():
            match key:
                case ("earlier", self._group, number):
                    self._schemas[int(number)] = Schema.parse(text)

    def leave(self, schema: Schema, *, used: Collection[str], learns: bool = True) -> None:
        """Remember a schema that is left; of too many, forget those without rows (`used`)."""
        for number, each in list(self._schemas.items()):
            if each == schema:
                self._forget(number)
        # Under an open schema readings are only measured, and counted once the fleet has settled
        # it. Under any other, a client may have learnt what has not arrived yet.
        if learns or schema.fingerprint in used:
            number = 1 + max(self._schemas, default=0)
            self._schemas[number] = schema
            self._changes[self._key(number)] = schema.canonical
        while len(self._schemas) > MOST:
            numbers = sorted(self._schemas)
            idle = [each for each in numbers if self._schemas[each].fingerprint not in used]
            self._forget((idle or numbers)[0])

    @property
    def schemas(self) -> tuple[Schema, ...]:
        """All of them, the newest first."""
        return tuple(each for _, each in sorted(self._schemas.items(), reverse=True))

    def read_as(self, schema: Schema) -> dict[str, Schema]:
        """Return those whose rows can be read as of a schema by fingerprint, the newest first."""
        return {
            each.fingerprint: each
            for each in self.schemas
            if each != schema
            and each.family == schema.family
            # Rows without any of its channels say nothing: they would count, and all be assumed.
            and not set(each.named).isdisjoint(schema.named)
        }

    def _forget(self, number: int) -> None:
        del self._schemas[number]
        self._changes[self._key(number)] = None

    def _key(self, number: int) -> Key:
        return "earlier", self._group, str(number)


def with_known_sums(report: Report, schema_of: SchemaOf) -> Report:
    """Return a report without sums of a schema whose rows do not count; itself if it has none."""
    sums = report.earlier
    if sums is None or schema_of(sums.fingerprint) is not None:
        return report
    return replace(report, earlier=None)


def is_old(report: Report, schema_of: SchemaOf) -> bool:
    """Return whether a report is of an earlier schema, and nothing in it counts."""
    sums = report.earlier
    prints = (report.fingerprint,) if sums is None else (report.fingerprint, sums.fingerprint)
    return all(schema_of(each) is None for each in prints)


def sealed_of(row: Row) -> Iterator[tuple[str, Sealed]]:
    """Yield what a row leaves when it is sealed, each with the fingerprint of its schema."""
    report, sums, counts = row.report, row.report.earlier, row.report.counts
    if sums is not None:
        counts = counts.without(sums.counts)
        yield sums.fingerprint, Sealed(sums.summary, None, sums.counts, row.as_of)
    yield report.fingerprint, Sealed(report.summary, report.moments, counts, row.as_of)
