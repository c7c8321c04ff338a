"""NamePatterns: which names a sensor takes."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate


class NamePatterns:
    """Names, by patterns as of a shell: `*` is any text, `?` any character.

    include, exclude : A name has to fit one of the first, and none of the second.
    """

    def __init__(self, include: Sequence[str], exclude: Sequence[str]) -> None:
        self._include, self._exclude = _any_of(include), _any_of(exclude)

    def take(self, name: str) -> bool:
        """Return whether a name passes."""
        return bool(self._include.match(name)) and not self._exclude.match(name)

    def leave_out(self, device: str) -> bool:
        """Return whether all fields of a device are excluded."""
        return bool(self._exclude.match(f"{device}/"))


def _any_of(patterns: Iterable[str]) -> re.Pattern[str]:
    joined = "|".join(map(translate, patterns))
    return re.compile(joined or r"(?!)")
