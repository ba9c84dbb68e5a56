"""Runs whole ONNX models, given as text, as the Keras source that porter writes for them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from onnx import helper, numpy_helper, parser
from onnx.reference import ReferenceEvaluator

from porter.converters.opset import OPSET
from tests.converters.targets.keras.nodes import ported

Arrays = Sequence[np.ndarray]


def model_of(text: str) -> onnx.ModelProto:
    """A model in porter's opset from a graph in ONNX's textual form."""
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {OPSET}]>\n{text}')


def doubled(model: onnx.ModelProto) -> onnx.ModelProto:
    """The model with its float constants and casts in float64, as the port computes them in the tests."""
    model = copy.deepcopy(model)

    def double(graph: onnx.GraphProto) -> None:
        for tensor in graph.initializer:
            if tensor.data_type == onnx.TensorProto.FLOAT:
                tensor.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(tensor).astype(np.float64), tensor.name))
        for node in graph.node:
            for attribute in list(node.attribute):
                if attribute.type == onnx.AttributeProto.GRAPH:
                    double(attribute.g)
                elif node.op_type == "Cast" and attribute.i == onnx.TensorProto.FLOAT:
                    attribute.i = onnx.TensorProto.DOUBLE
                elif node.op_type == "Constant" and attribute.name == "value_float":
                    node.attribute.remove(attribute)
                    node.attribute.append(
                        helper.make_attribute("value", numpy_helper.from_array(np.float64(attribute.f)))
                    )
                elif attribute.type == onnx.AttributeProto.TENSOR and attribute.t.data_type == onnx.TensorProto.FLOAT:
                    attribute.t.CopyFrom(numpy_helper.from_array(numpy_helper.to_array(attribute.t).astype(np.float64)))

    double(model.graph)
    return model


def flat(results: Any) -> list[np.ndarray]:
    """Arrays of results, those in lists one after the other."""
    if isinstance(results, list | tuple):
        return [array for each in results for array in flat(each)]
    return [np.asarray(results)]


def check_model(text: str, *cases: Arrays | tuple[Arrays, Arrays], weights: Sequence[str] = ()) -> str:
    """Assert that port and ONNX agree in float64, eagerly and traced with unknown sizes; the source.

    A case is the inputs, or (inputs, outputs) where ONNX's reference implementation is known to be wrong.
    """
    import keras
    import tensorflow as tf

    model = model_of(text)
    port, generated = ported(model, weights)
    names = [value.name for value in model.graph.input]
    sizes = [[d if isinstance(d, int) else None for d in spec.shape] for spec in generated.inputs]
    for case in cases:
        feeds: Any
        if isinstance(case[0], list | tuple):
            feeds, right = case
        else:
            feeds = case
            right = ReferenceEvaluator(doubled(model)).run(None, dict(zip(names, feeds, strict=True)))
        tensors = [keras.ops.convert_to_tensor(array) for array in feeds]
        signature = [tf.TensorSpec(shape, tensor.dtype) for shape, tensor in zip(sizes, tensors, strict=True)]
        traced = tf.function(port, input_signature=signature)
        for found in (port(*tensors), traced(*tensors)):
            for got, wanted in zip(flat(found), flat(list(right)), strict=True):
                assert got.shape == wanted.shape, f"{got.shape} is not {wanted.shape}\n{generated.source}"
                assert got.dtype.kind == wanted.dtype.kind, f"{got.dtype} is not {wanted.dtype}\n{generated.source}"
                np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-12, err_msg=generated.source)
    return generated.source
