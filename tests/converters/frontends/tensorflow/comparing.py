"""Runs a TensorFlow function and the structured ONNX made of it side by side, both in float64."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import tensorflow as tf
from onnx.reference import ReferenceEvaluator

from porter.converters.frontends.kernels import KERNELS
from porter.converters.frontends.tensorflow import sources
from porter.converters.frontends.tensorflow.translate import Translation, translate
from tests.converters.frontends.torch.comparing import _REPLACED, _run_operator

# Where ONNX's reference implementation is wrong (LRN over channels, SAME in pools) or rounds to float32.
_REPLACED = [*_REPLACED, "Conv", "MaxPool", "LRN"]

RTOL = 1e-9


def traced(function: Callable[..., Any], inputs: Sequence[np.ndarray], also: Sequence[np.ndarray] | None) -> Any:
    """The function for those inputs; a size that is another in `also` varies."""
    specs = []
    for number, array in enumerate(inputs):
        other = array if also is None else also[number]
        shape = [a if a == b else None for a, b in zip(array.shape, other.shape, strict=True)]
        specs.append(tf.TensorSpec(shape, array.dtype, name=f"x{number}"))
    return tf.function(function).get_concrete_function(*specs)


def symbols_of(program: Any) -> dict[str, dict[int, str]]:
    """A name for every size that varies."""
    return {
        each.name: {axis: f"{each.name}_{axis}" for axis, size in enumerate(each.shape) if size is None}
        for each in program.inputs
    }


def graph_of(function: Any, root: Any = None) -> Translation:
    """The translation of a concrete function."""
    program = sources.of_function(function, "case", root)
    return translate(program, symbols_of(program))


def run(graph: ir.Model, inputs: Sequence[np.ndarray]) -> tuple[list[np.ndarray], dict[str, np.ndarray]]:
    """The graph's outputs and everything computed on the way, by ONNX's own reference implementation."""
    proto = ir.serde.serialize_model(graph)
    onnx.checker.check_model(proto, full_check=False)
    outputs = [output.name for output in graph.graph.outputs]
    values = [value for node in graph.graph for value in node.outputs if value.name and value.name not in outputs]
    proto.graph.output.extend(onnx.helper.make_empty_tensor_value_info(value.name) for value in values)
    evaluator = ReferenceEvaluator(proto, new_ops=[_run_operator(name) for name in _REPLACED if name in KERNELS])
    feeds = {value.name: array for value, array in zip(graph.graph.inputs, inputs, strict=True)}
    results = evaluator.run(None, feeds)
    named = dict(zip([*outputs, *(value.name for value in values)], map(np.asarray, results), strict=True))
    # porter's kernels compute in float64 whatever they are given.
    return [named[value.name].astype(value.dtype.numpy(), copy=False) for value in graph.graph.outputs], named


def assert_shapes(graph: ir.Model, arrays: dict[str, np.ndarray], inputs: Sequence[np.ndarray]) -> None:
    """Every shape that the translation wrote down is the one that the value has."""
    sizes: dict[str, Any] = {"Min": min, "Max": max}
    for value, array in zip(graph.graph.inputs, inputs, strict=True):
        for size, actual in zip(value.shape, array.shape, strict=True):
            if not isinstance(size, int):
                sizes[size.value] = actual
    for node in graph.graph:
        for value in node.outputs:
            if value.shape is None or value.name not in arrays:
                continue
            actual = arrays[value.name].shape
            assert len(actual) == len(value.shape), f"{node.op_type} {value.name}: {value.shape} for {actual}"
            for size, true in zip(value.shape, actual, strict=True):
                if isinstance(size, int):
                    assert size == true, f"{node.op_type} {value.name}: {value.shape} for {actual}"
                elif size.value is not None and not str(size.value).startswith("size_"):
                    assert eval(str(size.value), {}, sizes) == true, f"{value.name}: {value.shape} for {actual}"


def assert_same(actual: Sequence[np.ndarray], wanted: Sequence[np.ndarray], rtol: float) -> None:
    """Equal dtypes and shapes; integers and booleans equal, floats equal to `rtol` of the tensor's scale."""
    assert len(actual) == len(wanted), f"{len(actual)} outputs for {len(wanted)}"
    for index, (got, want) in enumerate(zip(actual, wanted, strict=True)):
        assert got.dtype == want.dtype, f"output {index}: {got.dtype} for {want.dtype}"
        assert got.shape == want.shape, f"output {index}: {got.shape} for {want.shape}"
        if want.dtype.kind == "f":
            finite = want[np.isfinite(want)]
            scale = max(float(np.abs(finite).max()) if finite.size else 0.0, 1e-30)
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * scale, equal_nan=True)
        else:
            np.testing.assert_array_equal(got, want)


def tolerance(graph: ir.Model, double: bool) -> float:
    """ONNX keeps attributes in float32: a slope of 0.2 is off by 1e-8, which is no fault of the translation."""
    if not double:
        return 1e-5
    for node in graph.graph:
        numbers = [a.value for a in node.attributes.values() if a.type == ir.AttributeType.FLOAT]
        if node.op_type == "Selu" or any(float(np.float32(n)) != n or not math.isfinite(n) for n in numbers):
            return 1e-6
    return RTOL


def compare(
    function: Callable[..., Any],
    inputs: Sequence[np.ndarray],
    also: Sequence[np.ndarray] | None = None,
    double: bool = True,
) -> tuple[Any, Translation]:
    """Translate on the specs of `inputs`, compare there and on `also`; the traced function and its translation."""

    def fitted(arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        return [a if double or a.dtype != np.float64 else a.astype(np.float32) for a in arrays]

    inputs = fitted(inputs)
    also = None if also is None else fitted(also)
    concrete = traced(function, inputs, also)
    translation = graph_of(concrete)
    for given in (inputs, also) if also is not None else (inputs,):
        wanted = [np.asarray(t) for t in tf.nest.flatten(concrete(*map(tf.constant, given)))]
        got, named = run(translation.model, given)
        assert_same(got, wanted, tolerance(translation.model, double))
        assert_shapes(translation.model, named, given)
    return concrete, translation
