"""What other packages add to `submerge`, found by their entry points (group `submerge.faces`).

A user looks here for `submerge.Model`, `submerge.dask`, `submerge.river` and `submerge.pyod`; they
stand on packages that import this one. Nothing here names them; no module of the core uses them.
"""

import typing as _typing


def face(name: str) -> _typing.Any:
    """Return what a package offers as `submerge.name`; ImportError if none does."""
    from importlib.metadata import entry_points  # late: it costs some milliseconds

    for entry in entry_points(group="submerge.faces", name=name):
        return entry.load()
    raise ImportError(f"no installed package offers submerge.{name}: install submerge again")
