"""`submerge.flower`: a group of submerge inside a Flower federation.

Each Flower client is a `ClientNode`, and the server app holds the root, an `AggregatorNode`. Flower
carries their messages, as bytes, in its instructions and replies; nothing is averaged. The client
app and the strategy need Flower (the extra `flower`) and are imported when they are used. What
they drive (`life`, `root`) does not, and is tested without it.
"""

from typing import TYPE_CHECKING, Any

from submerge_bridges.flower.group import FlowerGroup

if TYPE_CHECKING:
    from submerge_bridges.flower.client import client_app, train_function
    from submerge_bridges.flower.strategy import SubmergeStrategy

__all__ = ["FlowerGroup", "SubmergeStrategy", "client_app", "train_function"]

PLACES = {"client_app": "client", "train_function": "client", "SubmergeStrategy": "strategy"}
"""Where the names are that need Flower."""


def __getattr__(name: str) -> Any:
    if name not in PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    from submerge import UsageError

    try:
        return getattr(importlib.import_module(f"{__name__}.{PLACES[name]}"), name)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "flwr":
            raise
        raise UsageError(
            f"submerge.flower.{name} needs flwr, which is not installed:"
            " pip install 'submerge[flower]'"
        ) from error
