"""Runs one ONNX graph as the Keras source that porter writes for it, and as ONNX defines it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import onnx
import onnx_ir as ir
from onnx import helper
from onnx.reference import ReferenceEvaluator

from porter.converters.opset import KIND, OPSET, TRAINABLE
from porter.converters.pipeline import Generated, generate


@dataclass
class Case:
    """One operator with its operands. `weights` are parameters, `constants` known while porting, by input name.

    Every size is symbolic, save those of the operands in `sized` and the axes `known` of all others.
    """

    op: str
    inputs: dict[str, np.ndarray | None]
    attributes: dict[str, Any] = field(default_factory=dict)
    weights: tuple[str, ...] = ()
    constants: tuple[str, ...] = ()
    outputs: int = 1
    sized: tuple[str, ...] = ()
    known: tuple[int, ...] = ()
    domain: str = ""

    def __str__(self) -> str:
        shapes = ",".join("x".join(map(str, a.shape)) + a.dtype.char for a in self.inputs.values() if a is not None)
        return f"{self.op}[{shapes}]{self.attributes or ''}"


def _typed(array: np.ndarray) -> np.ndarray:
    """Doubles are declared as float32, which generated code computes in its own type."""
    return array.astype(np.float32) if array.dtype == np.float64 else array


def _info(name: str, array: np.ndarray, known: Sequence[int]) -> onnx.ValueInfoProto:
    numbers = [axis % array.ndim for axis in known if array.ndim]
    shape = [size if axis in numbers else f"{name}_{axis}" for axis, size in enumerate(array.shape)]
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(_typed(array).dtype), shape)


def graph_of(case: Case, *, spatial: bool = False, dynamic: bool = True) -> onnx.ModelProto:
    """The case as a model. `spatial` puts a pooling by one, which changes nothing but wants channels last, before the
    first operand and after the first output.
    """
    nodes, names = [], [name if array is not None else "" for name, array in case.inputs.items()]
    given = {name: array for name, array in case.inputs.items() if array is not None}
    run_time = [name for name in given if name not in case.weights and name not in case.constants]
    outputs = [f"out{index}" for index in range(case.outputs)]
    made = list(outputs)
    if spatial:
        rank = given[names[0]].ndim - 2
        nodes.append(helper.make_node("MaxPool", [names[0]], ["last"], kernel_shape=[1] * rank))
        names[0] = "last"
    nodes.append(helper.make_node(case.op, names, made, domain=case.domain, **case.attributes))
    everything = range(max(array.ndim for array in given.values()))
    inputs = [
        _info(name, given[name], case.known if dynamic and name not in case.sized else everything) for name in run_time
    ]
    constants = [onnx.numpy_helper.from_array(_typed(given[name]), name) for name in given if name not in run_time]
    graph = helper.make_graph(
        nodes, "Model", inputs, [helper.make_empty_tensor_value_info(o) for o in outputs], constants
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)])
    inferred = onnx.shape_inference.infer_shapes(model, data_prop=True)
    return inferred


def ported(model: onnx.ModelProto, weights: Sequence[str] = (), *, native: bool = False) -> tuple[Any, Generated]:
    """The Keras model that porter writes, built and with its weights."""
    graph = ir.serde.deserialize_model(model)
    for name, value in graph.graph.initializers.items():
        value.metadata_props[KIND] = "parameter" if name in weights else "constant"
        value.metadata_props[TRAINABLE] = "1" if name in weights else "0"
    arrays = {name: value.const_value.numpy() for name, value in graph.graph.initializers.items()}
    generated = generate(graph, native=native)
    return loaded(generated, arrays), generated


def loaded(generated: Generated, arrays: dict[str, np.ndarray]) -> Any:
    """The generated model with its weights, from memory."""
    made = generated.arrays(arrays)

    def load_weights(model: Any, path: Path, **_: bool) -> None:
        for name, array in made.items():
            namespace["find"](model, name).assign(array)

    namespace: dict[str, Any] = {"__name__": "generated", "__file__": "model.py"}
    exec(compile(generated.source, "model.py", "exec"), namespace)
    namespace["load_weights"] = load_weights
    return namespace["build"]()


def run(
    case: Case, *, spatial: bool = False, dynamic: bool = True, right: list[np.ndarray] | None = None
) -> tuple[list[np.ndarray], list[np.ndarray], str]:
    """(what the port computes, what ONNX computes unless it is given, the source), both from the same doubles."""
    import keras
    import tensorflow as tf

    port, generated = ported(graph_of(case, spatial=spatial, dynamic=dynamic), case.weights)
    absent = (*case.weights, *case.constants)
    feeds = [array for name, array in case.inputs.items() if array is not None and name not in absent]
    tensors = [keras.ops.convert_to_tensor(array) for array in feeds]
    sizes = [[d if isinstance(d, int) else None for d in spec.shape] for spec in generated.inputs]
    signature = [tf.TensorSpec(shape, tensor.dtype) for shape, tensor in zip(sizes, tensors, strict=True)]
    got = port(*tensors)
    traced = tf.function(port, input_signature=signature)(*tensors)
    found = [np.asarray(value) for value in (got if isinstance(got, list | tuple) else [got])]
    for eager, compiled in zip(found, traced if isinstance(traced, list | tuple) else [traced], strict=True):
        np.testing.assert_allclose(eager, compiled, rtol=1e-12, atol=1e-12, equal_nan=True, err_msg="eager and traced")
    return found, right or expected(case), generated.source


def expected(case: Case) -> list[np.ndarray]:
    """ONNX's reference implementation on doubles."""
    bare = graph_of(case)
    del bare.graph.initializer[:]
    feeds = {name: array for name, array in case.inputs.items() if array is not None}
    bare.graph.input.extend(
        _info(name, array, ()) for name, array in feeds.items() if name not in {i.name for i in bare.graph.input}
    )
    return [np.asarray(value) for value in ReferenceEvaluator(bare).run(None, feeds)]


def check(
    case: Case,
    *,
    spatial: bool = False,
    dynamic: bool = True,
    rtol: float = 1e-12,
    atol: float = 1e-12,
    right: list[np.ndarray] | None = None,
) -> str:
    """Assert that port and ONNX agree in value, shape and kind of type; the source for further looks."""
    found, wanted, source = run(case, spatial=spatial, dynamic=dynamic, right=right)
    assert len(found) == len(wanted), source
    for got, exact in zip(found, wanted, strict=True):
        assert got.shape == exact.shape, f"{got.shape} is not {exact.shape}\n{source}"
        assert got.dtype.kind == exact.dtype.kind, f"{got.dtype} is not {exact.dtype}\n{source}"
        if exact.dtype.kind in "iu":
            assert got.dtype == exact.dtype, f"{got.dtype} is not {exact.dtype}\n{source}"
        np.testing.assert_allclose(got, exact, rtol=rtol, atol=atol, equal_nan=True, err_msg=source)
    return source
