"""Graphs as a channels-last framework gives them: native PyTorch code, with no permute left. Each has a twin in which
all sizes are equal.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import helper, numpy_helper
from onnx.reference import ReferenceEvaluator

from porter.converters.opset import OPSET
from tests.converters.targets.torch.nodes import listed, ported

RNG = np.random.default_rng(5)
Arrays = dict[str, np.ndarray]


def around(op: str, x: str, y: str, weights: list[str], rank: int = 4, **attributes: Any) -> list[onnx.NodeProto]:
    """A spatial operator on a channels-last value."""
    first, last = [0, rank - 1, *range(1, rank - 1)], [0, *range(2, rank), 1]
    return [
        helper.make_node("Transpose", [x], [f"{y}_first"], perm=first),
        helper.make_node(op, [f"{y}_first", *weights], [f"{y}_made"], **attributes),
        helper.make_node("Transpose", [f"{y}_made"], [y], perm=last),
    ]


def conv(name: str, x: str, y: str, sizes: tuple[int, ...], arrays: Arrays, **attributes: Any) -> list[onnx.NodeProto]:
    arrays |= {f"{name}.w": RNG.normal(size=sizes), f"{name}.b": RNG.normal(size=sizes[0])}
    return around("Conv", x, y, [f"{name}.w", f"{name}.b"], **attributes)


def norm(name: str, x: str, y: str, size: int, arrays: Arrays, rank: int = 4) -> list[onnx.NodeProto]:
    weights = [f"{name}.{part}" for part in ("scale", "shift", "mean", "variance")]
    arrays |= {weight: RNG.uniform(0.5, 1.5, size) for weight in weights}
    return around("BatchNormalization", x, y, weights, rank, epsilon=2**-10, momentum=0.5)


def check(nodes: list[onnx.NodeProto], shape: list[Any], arrays: Arrays, *, native: bool = True) -> tuple[str, Any]:
    """Assert that the port computes what ONNX does; the source and what was generated."""
    typed = {n: a.astype(np.float32) if a.dtype.kind == "f" else a for n, a in arrays.items()}
    given = [numpy_helper.from_array(array, name) for name, array in typed.items()]
    taken = [helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, shape)]
    graph = helper.make_graph(nodes, "Net", taken, [helper.make_empty_tensor_value_info("y")], given)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    model = onnx.shape_inference.infer_shapes(model, data_prop=True)
    bare = onnx.ModelProto()
    bare.CopyFrom(model)
    del bare.graph.initializer[:]
    for name, array in typed.items():
        kind = helper.np_dtype_to_tensor_dtype(array.dtype)
        bare.graph.input.append(helper.make_tensor_value_info(name, kind, array.shape))
    x = RNG.normal(size=[2 if isinstance(size, str) else size for size in shape])
    feeds = {n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in typed.items()}
    (wanted,) = ReferenceEvaluator(bare).run(None, {"x": x, **feeds})
    port, generated = ported(model, [n for n, a in arrays.items() if a.dtype.kind == "f"], native=native)
    with torch.no_grad():
        moved = np.ascontiguousarray(x.transpose(generated.inputs[0].permutation))
        (found,) = listed(port(torch.from_numpy(moved)))
    expected = wanted.transpose(generated.outputs[0].permutation)
    np.testing.assert_allclose(found.numpy(), expected, rtol=1e-12, atol=1e-12, err_msg=generated.source)
    return generated.source, generated


def permutes(source: str) -> int:
    return source.count(".permute(") + source.count(".transpose(")


@pytest.mark.parametrize(("height", "width", "channels", "filters"), [(8, 6, 3, 5), (4, 4, 4, 4)])
@pytest.mark.parametrize("native", [True, False])
def test_a_classifier(height: int, width: int, channels: int, filters: int, native: bool) -> None:
    """The flatten's order goes into the rows of the Linear; a vector along the last axis follows the channels."""
    flat = height * width // 4 * filters
    arrays: Arrays = {"scale": RNG.normal(size=filters), "fc.w": RNG.normal(size=(flat, 7)), "fc.b": RNG.normal(size=7)}
    arrays["shape"] = np.array([0, -1])
    nodes = [
        *conv("c", "x", "a", (filters, channels, 3, 3), arrays, pads=[1, 1, 1, 1]),
        *norm("n", "a", "b", filters, arrays),
        helper.make_node("Relu", ["b"], ["r"]),
        helper.make_node("Mul", ["r", "scale"], ["s"]),
        *around("MaxPool", "s", "p", [], kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Reshape", ["p", "shape"], ["f"]),
        helper.make_node("Gemm", ["f", "fc.w", "fc.b"], ["y"]),
    ]
    source, generated = check(nodes, ["batch", height, width, channels], arrays, native=native)
    assert permutes(source) == (not native)
    assert generated.inputs[0].permutation == ((0, 3, 1, 2) if native else (0, 1, 2, 3))
    assert "nn.BatchNorm2d(" in source and "nn.Linear(" in source and ".flatten(1)" in source


@pytest.mark.parametrize(("height", "width", "channels"), [(8, 6, 4), (4, 4, 4)])
def test_an_image_to_an_image(height: int, width: int, channels: int) -> None:
    """Residual sums, squeeze and excitation, joined channels, and an output that is native too."""
    arrays: Arrays = {"axes": np.array([1, 2]), "shape": np.array([0, 1, 1, channels])}
    nodes = [
        *conv("c", "x", "a", (channels, channels, 3, 3), arrays, pads=[1, 1, 1, 1]),
        helper.make_node("Add", ["a", "x"], ["s"]),
        helper.make_node("ReduceMean", ["s", "axes"], ["m"], keepdims=0),
        helper.make_node("Reshape", ["m", "shape"], ["e"]),
        *conv("se", "e", "g", (channels, channels, 1, 1), arrays),
        helper.make_node("Sigmoid", ["g"], ["h"]),
        helper.make_node("Mul", ["s", "h"], ["t"]),
        helper.make_node("Concat", ["t", "x"], ["j"], axis=-1),
        *conv("o", "j", "k", (3, 2 * channels, 1, 1), arrays),
        helper.make_node("Softmax", ["k"], ["y"], axis=-1),
    ]
    source, generated = check(nodes, ["batch", height, width, channels], arrays)
    assert permutes(source) == 0 and "dim=1" in source
    assert generated.outputs[0].permutation == (0, 3, 1, 2)


@pytest.mark.parametrize(("height", "width", "channels"), [(4, 3, 5), (4, 4, 4)])
def test_a_vector_made_an_image(height: int, width: int, channels: int) -> None:
    """The columns of the Linear are re-ordered, and what follows is channels first at once."""
    arrays: Arrays = {
        "fc.w": RNG.normal(size=(6, height * width * channels)),
        "shape": np.array([0, height, width, channels]),
    }
    nodes = [
        helper.make_node("MatMul", ["x", "fc.w"], ["v"]),
        helper.make_node("Reshape", ["v", "shape"], ["i"]),
        *conv("c", "i", "y", (2, channels, 3, 3), arrays, pads=[1, 1, 1, 1]),
    ]
    assert permutes(check(nodes, ["batch", 6], arrays)[0]) == 0


def test_a_norm_over_the_features_of_a_sequence() -> None:
    """A sequence keeps its order outside of the norm."""
    arrays: Arrays = {}
    nodes = [*norm("n", "x", "a", 4, arrays, rank=3), helper.make_node("Relu", ["a"], ["y"])]
    source, generated = check(nodes, ["batch", "time", 4], arrays)
    assert permutes(source) == 2 and generated.outputs[0].permutation == (0, 1, 2)
