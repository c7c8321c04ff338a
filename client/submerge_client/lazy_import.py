"""later(): a module that loads when somebody looks into it, and not when it is imported.

For programs that must be small, about modules which a library imports and, for us, never
uses. It changes nothing but the time: whoever asks such a module for anything gets the real one.
"""

from __future__ import annotations

import importlib
import sys
from importlib.util import find_spec
from types import ModuleType
from typing import Any


def lazy_import(name: str) -> None:
    """Let a module load at its first use; for the program's start, before it has threads.

    Parameters
    ----------
    name : str
        Of a module inside a package: `package.module`. One that has loaded already stays; one
        that there is not is nobody's.

    Notes
    -----
    `importlib.util.LazyLoader` is made for this, but loads at the next `import` (CPython
    before 3.12): that looks at the module's spec, which counts as a use.
    """
    if name in sys.modules:
        return
    try:
        spec = find_spec(name)
    except ModuleNotFoundError:  # nor is there its package
        spec = None
    if spec is None:
        return
    package, _, last = name.rpartition(".")
    module = _Later(name)
    module.__spec__ = spec
    sys.modules[name] = module
    setattr(sys.modules[package], last, module)


class _Later(ModuleType):
    """In a module's place until it is used."""

    def __getattr__(self, attribute: str) -> Any:
        name = self.__name__
        if sys.modules.get(name) is self:
            del sys.modules[name]
        return getattr(importlib.import_module(name), attribute)
