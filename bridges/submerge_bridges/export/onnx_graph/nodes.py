"""GraphNodes: nodes and constants of an ONNX graph, named as they are added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt


class GraphNodes:
    """Nodes and constants of one graph.

    dtype : Of its numbers: float64 or float32.
    prefix : Of names. A graph inside of another has one of its own.
    """

    def __init__(self, dtype: npt.DTypeLike, prefix: str = "") -> None:
        self.dtype = np.dtype(dtype)
        self._prefix = prefix
        self._nodes: list[Any] = []
        self._constants: dict[tuple[str, bytes, tuple[int, ...]], Any] = {}

    @property
    def kind(self) -> int:
        """The type of its numbers, as ONNX has it."""
        from onnx import helper

        return int(helper.np_dtype_to_tensor_dtype(self.dtype))

    def add(self, operator: str, *inputs: str, out: str = "", **attributes: Any) -> str:
        """Add a node with one output; return the output's name.

        out : its name, for an output of the graph; by default one is made
        """
        return self.add_many(operator, inputs, (out,), **attributes)[0]

    def add_many(
        self, operator: str, inputs: Sequence[str], outs: Sequence[str], **attributes: Any
    ) -> list[str]:
        """Add a node with several outputs, named or not; return their names."""
        from onnx import helper

        made = [
            out or f"{self._prefix}{operator}_{len(self._nodes)}_{i}" for i, out in enumerate(outs)
        ]
        self._nodes.append(helper.make_node(operator, list(inputs), made, **attributes))
        return made

    def numbers(self, value: Any) -> str:
        """Return the name of a constant of the graph's type."""
        return self.constant(np.asarray(value, dtype=self.dtype))

    def whole(self, value: Any) -> str:
        """Return the name of a constant of whole numbers."""
        return self.constant(np.asarray(value, dtype=np.int64))

    def constant(self, value: npt.NDArray[Any]) -> str:
        """Return the name of a constant; equal ones are one."""
        from onnx import numpy_helper

        key = value.dtype.str, value.tobytes(), value.shape
        if key not in self._constants:
            name = f"{self._prefix}constant_{len(self._constants)}"
            self._constants[key] = numpy_helper.from_array(value, name)
        return str(self._constants[key].name)

    def any_of(self, flags: str, axis: int) -> str:
        """Return whether any of flags along an axis is true."""
        from onnx import TensorProto

        each = self.add("Cast", flags, to=TensorProto.INT32)
        most = self.add("ReduceMax", each, axes=[axis], keepdims=0)
        return self.add("Cast", most, to=TensorProto.BOOL)

    def sum_of(self, terms: str) -> str:
        """Return the sums of terms (n, m), (n,)."""
        return self.add("ReduceSum", terms, self.whole([1]), keepdims=0)

    def graph(self, name: str, inputs: Sequence[Any], outputs: Sequence[Any]) -> Any:
        """Return the graph of these nodes.

        inputs, outputs : of `value`
        """
        from onnx import helper

        return helper.make_graph(
            self._nodes, name, list(inputs), list(outputs), list(self._constants.values())
        )


def value(name: str, kind: int, shape: Sequence[int | str]) -> Any:
    """Return the declaration of an input or an output."""
    from onnx import helper

    return helper.make_tensor_value_info(name, kind, list(shape))
