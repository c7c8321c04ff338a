"""What packages above add to `submerge`, by entry points (`submerge.faces`): none is named here."""

import sys
import typing as _typing


def face(name: str) -> _typing.Any:
    """Return what a package offers as `submerge.name`; ImportError if none does."""
    from importlib.metadata import entry_points  # late: it costs some milliseconds

    for entry in entry_points(group="submerge.faces", name=name):
        return entry.load()
    raise ImportError(f"no installed package offers submerge.{name}: install submerge again")


def door(module: str) -> tuple[_typing.Any, _typing.Any]:
    """Return `__getattr__` and `__dir__` of a module whose `__all__` a package above offers."""
    offered, name = vars(sys.modules[module]), module.rpartition(".")[2]

    def attribute(wanted: str) -> _typing.Any:
        if wanted not in offered["__all__"]:
            raise AttributeError(f"module {module!r} has no attribute {wanted!r}")
        return getattr(face(name), wanted)

    return attribute, lambda: [*offered, *offered["__all__"]]
