"""matplotlib's figures, or a refusal without the package, before a command begins to work."""

from __future__ import annotations

from pathlib import Path

from submerge import UsageError
from submerge_client.files import atomic_file, writing_to

try:
    from matplotlib.axes import Axes
    from matplotlib.colors import LogNorm
    from matplotlib.figure import Figure
except ImportError as error:
    raise UsageError(
        "a picture needs matplotlib, which is not installed: pip install 'submerge[plot]'"
    ) from error

__all__ = ["Axes", "Figure", "LogNorm", "save"]


def save(figure: Figure, path: Path, *, dpi: int, description: str | None = None) -> None:
    """Write a figure to `path`; what stood there stays until it is whole."""
    metadata = None if description is None else {"Description": description}
    with writing_to(f"the picture to {path}"), atomic_file(path, durable=False) as file:
        figure.savefig(file, dpi=dpi, format="png", metadata=metadata)
