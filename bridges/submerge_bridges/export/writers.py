"""The languages that a model is exported in: each is a function from a recipe to a file's bytes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from submerge_bridges.export.c_source import c_source
from submerge_bridges.export.javascript import javascript
from submerge_bridges.export.onnx_graph.model import onnx_model
from submerge_bridges.export.recipe import Recipe


@dataclass(frozen=True, slots=True)
class ExportOptions:
    """What a writer may be asked for beside the recipe.

    single : whether it computes in float32
    prefix : what names in the program begin with
    """

    single: bool = False
    prefix: str = "submerge"


@dataclass(frozen=True, slots=True)
class ExportWriter:
    """Writes one language.

    takes : the options that it has: names of fields of `ExportOptions`
    """

    write: Callable[[Recipe, ExportOptions], bytes]
    takes: frozenset[str] = frozenset()


def _c(recipe: Recipe, options: ExportOptions) -> bytes:
    return c_source(recipe, single=options.single, prefix=options.prefix).encode("ascii")


def _js(recipe: Recipe, _: ExportOptions) -> bytes:
    return javascript(recipe).encode("ascii")


def _onnx(recipe: Recipe, options: ExportOptions) -> bytes:
    return onnx_model(recipe, single=options.single)


WRITERS: Mapping[str, ExportWriter] = {
    "c": ExportWriter(_c, frozenset({"single", "prefix"})),
    "js": ExportWriter(_js),
    "onnx": ExportWriter(_onnx, frozenset({"single"})),
}
