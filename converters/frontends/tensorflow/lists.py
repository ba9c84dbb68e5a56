"""TensorFlow's lists of tensors as one tensor with the list as its first axis."""

from __future__ import annotations

from dataclasses import dataclass

import onnx_ir as ir

from porter.converters.frontends.tensorflow.dims import Dim


@dataclass
class TensorList:
    """A list of `length` tensors of one shape.

    `value` stacks them; a list that was only reserved has none until the shape of its elements is known.
    """

    dtype: ir.DataType
    length: Dim | ir.Value
    element: list[Dim | None] | None
    value: ir.Value | None = None
