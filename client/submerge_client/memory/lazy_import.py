"""deferred(): modules that libraries import and a client hardly ever uses load at their first use.

For programs that must be small. A module's contents are not touched: `importlib.util.LazyLoader`
of the standard library runs the same code when the first attribute is read. Two threads must not
do that at once before Python 3.13: what `UNUSED` lists is read by no thread of ours.
"""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from importlib.machinery import ModuleSpec, PathFinder
from importlib.util import LazyLoader
from types import ModuleType

UNUSED = frozenset(
    {
        # paho's, which looks there for a proxy if PySocks is installed. It brings HTTP and e-mail.
        "urllib.request",
        # gRPC's second interface. It brings asyncio.
        "grpc.aio",
        "asyncio",
        # Messages in pure Python, imported beside those in C.
        "google.protobuf.internal.python_message",
        # NumPy's documentation of functions in C.
        "numpy._core._add_newdocs",
        "numpy._core._add_newdocs_scalars",
        "calendar",
        "msgspec.inspect",
    }
)
"""What a client has no use for: 3.2 MiB over MQTT, 4.5 over gRPC."""


@contextmanager
def deferred(names: Collection[str] = UNUSED) -> Iterator[None]:
    """Let modules that the body imports for the first time load at their first use."""
    finder = _Deferring(names)
    sys.meta_path.insert(0, finder)
    try:
        yield
    finally:
        sys.meta_path.remove(finder)


class _Deferring:
    """Finds what the path has, and puts off its loading."""

    def __init__(self, names: Collection[str]) -> None:
        self._names = names

    def find_spec(
        self, name: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """Return a spec that loads late; None for all other modules."""
        if name not in self._names:
            return None
        spec = PathFinder.find_spec(name, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = LazyLoader(spec.loader)
        return spec
