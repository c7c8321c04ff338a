"""What installed packages add to this one, found by their entry points: nothing here names them.

Groups: `submerge.sensors`, `submerge.sinks`, `submerge.clusters`, `submerge.roots`, and
`submerge.commands`. docs/extending.md says what each of them is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator
    from importlib.metadata import EntryPoint


def plugins(group: str) -> Iterator[EntryPoint]:
    """Yield what packages offer in a group, by name; of two with one name the first installed."""
    from importlib.metadata import entry_points  # late: it costs some milliseconds

    found: dict[str, EntryPoint] = {}
    for entry in entry_points(group=group):
        found.setdefault(entry.name, entry)
    yield from (found[name] for name in sorted(found))


def plugin(group: str, name: str) -> Any | None:
    """Return what a package offers under a name, loaded; None if none does."""
    return next((entry.load() for entry in plugins(group) if entry.name == name), None)
