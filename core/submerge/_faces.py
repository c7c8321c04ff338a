"""What packages above add to `submerge`, by entry points (`submerge.faces`): none is named here."""

import typing as _typing


def face(name: str) -> _typing.Any:
    """Return what a package offers as `submerge.name`; ImportError if none does."""
    from importlib.metadata import entry_points  # late: it costs some milliseconds

    for entry in entry_points(group="submerge.faces", name=name):
        return entry.load()
    raise ImportError(f"no installed package offers submerge.{name}: install submerge again")
