"""`submerge.flower`: a group of submerge inside a Flower federation (extra `flower`).

A door upward, as `submerge.Model` is (docs/decisions/0042, 0055): the code is in
`submerge_bridges.flower`, and is imported when a name is used. Nothing of this package may use it.
"""

import typing as _typing

__all__ = ["FlowerGroup", "SubmergeStrategy", "client_app", "train_function"]

if _typing.TYPE_CHECKING:
    FlowerGroup: _typing.Any
    SubmergeStrategy: _typing.Any
    client_app: _typing.Any
    train_function: _typing.Any
else:

    def __getattr__(name: str) -> _typing.Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        import importlib

        return getattr(importlib.import_module("submerge_bridges.flower"), name)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
