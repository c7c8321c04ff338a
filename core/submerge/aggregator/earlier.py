"""EarlierSchemas: the schemas that a group has had before the present one.

Rows are kept as they came. Where the present schema is of the same family (`Schema.family`), it has
only gained or lost channels, or measures them in other units, and rows of an earlier one are read
as rows of the present one (`pca.restated`): each counts once, as before, and what was learnt of the
other channels stays. Rows of other schemas are in no model.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from submerge.protocol.machine import Key, Records
from submerge.schema import Schema

MOST = 64
"""Schemas that are remembered."""


class EarlierSchemas:
    """The earlier schemas of one group.

    changes : Takes records to keep, None to delete.
    """

    def __init__(self, group: str, changes: dict[Key, Any]) -> None:
        self._group, self._changes = group, changes
        self._schemas: dict[int, Schema] = {}

    def load(self, records: Records) -> None:
        """Take the records of a store."""
        for key, text in records.items():
            match key:
                case ("earlier", self._group, number):
                    self._schemas[int(number)] = Schema.parse(text)

    def leave(self, schema: Schema, *, used: Collection[str], learns: bool = True) -> None:
        """Remember a schema that is left; where there are too many, forget those without rows.

        Also without rows: a client may have learnt under it what has not arrived yet.

        used : fingerprints of rows with summaries
        learns : whether readings are learnt under it. Under an open schema they are only measured,
            and counted once the fleet has settled it.
        """
        for number, each in list(self._schemas.items()):
            if each == schema:
                self._forget(number)
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
        """Return those whose rows can be read as of a schema by fingerprint, the newest first.

        Rows without any of its channels say nothing: they would count, and all be assumed.
        """
        return {
            each.fingerprint: each
            for each in self.schemas
            if each != schema
            and each.family == schema.family
            and not set(each.named).isdisjoint(schema.named)
        }

    def _forget(self, number: int) -> None:
        del self._schemas[number]
        self._changes[self._key(number)] = None

    def _key(self, number: int) -> Key:
        return "earlier", self._group, str(number)
