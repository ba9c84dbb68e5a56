"""Reading and writing at positions, negative and repeated ones too, against ONNX's reference."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.converters.targets.keras.nodes import Case, check, graph_of, loaded, run

RNG = np.random.default_rng(19)
SHAPES = [(2, 3, 4, 5), (3, 3, 3, 3)]


@pytest.fixture(autouse=True)
def double_precision(keras_double: None) -> None:
    """Every comparison here is made in double precision."""


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


# ***** reading *****


@pytest.mark.parametrize("axis", [0, 1, 2, -1])
@pytest.mark.parametrize("indices", [0, -1, [1], [-2, 0, 1], [[0, 1], [-1, -2]]])
@pytest.mark.parametrize("constants", [(), ("indices",)])
@pytest.mark.parametrize("shape", SHAPES)
def test_gather(axis: int, indices: Any, constants: tuple[str, ...], shape: tuple[int, ...]) -> None:
    inputs = {"x": normal(*shape), "indices": np.array(indices, np.int64)}
    source = check(Case("Gather", inputs, {"axis": axis}, constants=constants), spatial=True)
    assert ("ops.take" in source) == (not constants or indices not in (0, -1))


@pytest.mark.parametrize("kind", [np.int32, np.int64])
def test_gather_takes_either_integer(kind: type) -> None:
    check(Case("Gather", {"x": normal(4, 2), "indices": np.array([0, -1, 3], kind)}))


@pytest.mark.parametrize("indices", [[[0, 4, 1]], [1, 1], [[[2], [3]]]])
def test_a_lookup_in_a_parameter_is_an_embedding(indices: Any) -> None:
    table = RNG.integers(-64, 64, (5, 3)) / 16
    source = check(Case("Gather", {"table": table, "indices": np.array(indices, np.int64)}, weights=("table",)))
    assert "layers.Embedding(5, 3)" in source


def test_rows_of_a_parameter_at_fixed_positions_are_no_embedding() -> None:
    table = RNG.integers(-64, 64, (5, 3)) / 16
    inputs = {"table": table, "indices": np.array([[0, 4], [2, 2]], np.int64)}
    import onnx
    from onnx import helper

    model = graph_of(Case("Gather", inputs, constants=("indices",), weights=("table",)))
    model.graph.node.append(helper.make_node("Add", ["out0", "x"], ["sum"]))
    model.graph.input.append(helper.make_tensor_value_info("x", onnx.TensorProto.FLOAT, [2, 2, 3]))
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("sum", onnx.TensorProto.FLOAT, [2, 2, 3]))
    from tests.converters.targets.keras.nodes import ported

    port, generated = ported(model, ("table",))
    assert "Embedding" not in generated.source
    x = normal(2, 2, 3)
    np.testing.assert_allclose(port(x), table[inputs["indices"]] + x)


def test_the_padding_row_gets_no_gradient() -> None:
    import onnx_ir as ir
    import tensorflow as tf
    import torch

    from porter.converters.opset import KIND, TRAINABLE, TRAINING
    from porter.converters.pipeline import generate

    table = (RNG.integers(-64, 64, (5, 3)) / 16).astype(np.float32)
    indices = np.array([[0, 2, 1, 2]], np.int64)
    graph = ir.serde.deserialize_model(
        graph_of(Case("Gather", {"table": table, "indices": indices}, weights=("table",)))
    )
    weight = graph.graph.initializers["table"]
    weight.metadata_props.update({KIND: "parameter", TRAINABLE: "1"})
    graph.graph[0].metadata_props[TRAINING] = '{"padding_idx": 2}'
    port = loaded(generate(graph), {"table": table})

    reference = torch.nn.Embedding.from_pretrained(torch.tensor(table), freeze=False, padding_idx=2)
    reference(torch.tensor(indices)).square().sum().backward()
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(tf.square(port(indices)))
    (gradient,) = tape.gradient(loss, port.trainable_variables)
    np.testing.assert_allclose(tf.convert_to_tensor(gradient), reference.weight.grad, rtol=1e-6)


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("lengths", [(2, 3, 4, 5), (1, 3, 2, 5), (2, 1, 4, 7), (2, 3, 1, 1)])
@pytest.mark.parametrize("dynamic", [False, True])
def test_gather_elements(axis: int, lengths: tuple[int, ...], dynamic: bool) -> None:
    """The indices may cover a corner of the data, and more than all of it along the axis; torch is the oracle."""
    import torch

    shape = (2, 3, 4, 5)
    lengths = tuple(size if at == axis % 4 else min(size, shape[at]) for at, size in enumerate(lengths))
    x, indices = normal(*shape), RNG.integers(-shape[axis], shape[axis], lengths)
    case = Case("GatherElements", {"x": x, "indices": indices}, {"axis": axis})
    right = torch.gather(torch.tensor(x), axis, torch.tensor(indices % shape[axis])).numpy()
    check(case, spatial=True, dynamic=dynamic, right=[right])


@pytest.mark.parametrize(
    ("shape", "positions", "batch"),
    [
        ((3, 4), (5, 2), 0),
        ((3, 4), (5, 1), 0),
        ((3, 4, 2), (2, 3, 2), 0),
        ((2, 3, 4), (2, 2), 1),
        ((2, 3, 4), (2, 5, 1), 1),
        ((2, 3, 4, 2), (2, 3, 6, 1), 2),
    ],
)
def test_gather_nd(shape: tuple[int, ...], positions: tuple[int, ...], batch: int) -> None:
    limits = shape[batch : batch + positions[-1]]
    indices = np.stack([RNG.integers(-limit, limit, positions[:-1]) for limit in limits], axis=-1)
    known = (-1,)
    check(Case("GatherND", {"x": normal(*shape), "indices": indices}, {"batch_dims": batch}, known=known))


@pytest.mark.parametrize("shape", [(7,), (3, 4)])
def test_nonzero(shape: tuple[int, ...]) -> None:
    check(Case("NonZero", {"x": RNG.integers(0, 2, shape).astype(float)}))


@pytest.mark.parametrize("axis", [None, 0, 1, -1])
def test_compress(axis: int | None) -> None:
    attributes = {} if axis is None else {"axis": axis}
    check(Case("Compress", {"x": normal(3, 3), "condition": np.array([False, True, True])}, attributes))


@pytest.mark.parametrize("axis", [None, 0, 1])
@pytest.mark.parametrize("outputs", [1, 4])
def test_unique(axis: int | None, outputs: int) -> None:
    x = np.array([[2.0, 1, 1], [3, 0, 0], [2, 1, 1]])
    check(Case("Unique", {"x": x}, {} if axis is None else {"axis": axis}, outputs=outputs))


def test_unique_in_order_of_appearance() -> None:
    """ONNX's reference sorts here too."""
    right = [np.array([2.0, 1, 3, 0]), np.array([0, 1, 3, 4]), np.array([0, 1, 1, 2, 3, 1]), np.array([1, 3, 1, 1])]
    check(Case("Unique", {"x": np.array([[2.0, 1, 1], [3, 0, 1]])}, {"sorted": 0}, outputs=4), right=right)
    columns = [np.array([[2.0, 1], [3, 0]]), np.array([0, 1]), np.array([0, 1, 1]), np.array([1, 2])]
    check(Case("Unique", {"x": np.array([[2.0, 1, 1], [3, 0, 0]])}, {"sorted": 0, "axis": 1}, outputs=4), right=columns)


# ***** writing *****

REDUCTIONS = ["none", "add", "mul", "max", "min"]


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_scatter_elements(reduction: str, axis: int) -> None:
    shape, lengths = (3, 4, 5), (2, 3, 2)
    order = np.argsort(RNG.random((2, 3, 2)), axis=axis) if reduction == "none" else RNG.integers(-2, 2, lengths)
    inputs = {"x": normal(*shape), "indices": order, "updates": normal(*lengths)}
    check(Case("ScatterElements", inputs, {"axis": axis, "reduction": reduction}))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("depth", [1, 2])
def test_scatter_nd(reduction: str, depth: int) -> None:
    """Repeated positions are combined, save without a reduction, where they are undefined."""
    rows = [[0, 1], [-1, 2], [1, 0]] if reduction == "none" else [[0, 1], [-1, 2], [-1, 2]]
    indices = np.array(rows, np.int64)[:, :depth]
    inputs = {"x": normal(3, 4, 2), "indices": indices, "updates": normal(3, *(3, 4, 2)[depth:])}
    check(Case("ScatterND", inputs, {"reduction": reduction}, known=(-1,)))


def test_scatter_nd_of_integers() -> None:
    inputs = {"x": np.arange(8), "indices": np.array([[4], [3], [1]]), "updates": np.array([9, 10, 11])}
    check(Case("ScatterND", inputs, known=(-1,)))


# ***** classes and triangles *****


@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
@pytest.mark.parametrize("values", [(0.0, 1.0), (0.5, 3.0), (-1.0, 0.0)])
def test_one_hot(axis: int, values: tuple[float, float]) -> None:
    inputs = {"x": np.array([[0, 3, -1], [2, 9, -9]]), "depth": np.array(4), "values": np.array(values)}
    check(Case("OneHot", inputs, {"axis": axis}, constants=("depth", "values")))


def test_one_hot_of_integers() -> None:
    inputs = {"x": np.array([0, 3]), "depth": np.array(4), "values": np.array([0, 1])}
    check(Case("OneHot", inputs, constants=("depth", "values")))


@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, -5, -1, 0, 1, 6])
@pytest.mark.parametrize("dynamic", [False, True])
def test_triangles(upper: int, k: int | None, dynamic: bool) -> None:
    number = None if k is None else np.array(k)
    if dynamic and k is not None and abs(k) > 4:
        pytest.skip("TensorFlow takes no diagonal outside a matrix of unknown size")
    check(Case("Trilu", {"x": normal(2, 4, 5), "k": number}, {"upper": upper}, constants=("k",)), dynamic=dynamic)


def test_positions_used_as_indices_are_not_widened() -> None:
    from onnx import helper

    from tests.converters.targets.keras.nodes import ported

    model = graph_of(Case("ArgMax", {"x": normal(2, 5)}, {"axis": 1}))
    model.graph.node.append(helper.make_node("GatherElements", ["x", "out0"], ["best"], axis=1))
    model.graph.output[0].CopyFrom(helper.make_empty_tensor_value_info("best"))
    _, generated = ported(model)
    assert "int64" not in generated.source
    assert "int64" in run(Case("ArgMax", {"x": normal(2, 5)}))[2]
