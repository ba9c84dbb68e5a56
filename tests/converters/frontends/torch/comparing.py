"""Runs a torch model and the structured ONNX made of it side by side, both in float64."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch
from onnx.reference import ReferenceEvaluator
from onnx.reference.op_run import OpRun
from torch.utils import _pytree as pytree

from porter.converters.frontends.kernels import KERNELS
from porter.converters.frontends.resize_kernel import Resize
from porter.converters.frontends.torch.export import call_arguments, evaluating, export
from porter.converters.frontends.torch.translate import translate

RTOL = 1e-9

# Where ONNX's reference implementation rounds to float32 or is not vectorised: porter's kernels, which are tested
# against it in test_kernels.py.
_REPLACED = [
    "LayerNormalization",
    "RMSNormalization",
    "GroupNormalization",
    "Gelu",
    "Erf",
    "AveragePool",  # ceil_mode without padding
    "ConvTranspose",  # groups
    "RNN",  # Relu
    "LSTM",  # activations, sequence lengths
    "GRU",
    "AffineGrid",
    "GridSample",
    "Resize",
]
assert KERNELS["Resize"] is Resize


def _run_operator(op_type: str) -> type[OpRun]:
    def run(self: OpRun, *inputs: Any, **attributes: Any) -> tuple[np.ndarray, ...]:
        present = {key: value for key, value in attributes.items() if value is not None}
        return KERNELS[op_type](present, *inputs)

    return type(op_type, (OpRun,), {"op_domain": "", "_run": run})


class Case(torch.nn.Module):
    """A function as a module."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)


def doubled(tree: Any) -> Any:
    """The tree with its float tensors and arrays in float64."""

    def leaf(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            value = torch.from_numpy(np.ascontiguousarray(value))
        if not isinstance(value, torch.Tensor):
            return value
        return value.double() if value.is_floating_point() else value.clone()

    return pytree.tree_map(leaf, tree)


def graph_of(model: torch.nn.Module, inputs: Any, dynamic: Any = "auto") -> ir.Model:
    """Structured ONNX of the model, with names for the dynamic axes that are named."""
    program = export(model, inputs, dynamic)
    return translate(program, model, dynamic if isinstance(dynamic, dict) else None)


def evaluator(graph: ir.Model, replaced: Sequence[str] = _REPLACED) -> ReferenceEvaluator:
    """ONNX's own reference implementation of the graph, which must first satisfy ONNX's checker.

    Operators that are `replaced` are computed by porter's kernels.
    """
    proto = ir.serde.serialize_model(graph)
    onnx.checker.check_model(proto, full_check=False)
    return ReferenceEvaluator(proto, new_ops=[_run_operator(op_type) for op_type in replaced])


def evaluate(graph: ReferenceEvaluator, inputs: Any) -> list[np.ndarray]:
    """The graph's outputs for the model's inputs, given as the model takes them."""
    args, kwargs = call_arguments(inputs)
    tensors = [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]
    if kwargs:
        feeds = {name: kwargs[name].numpy() for name in graph.input_names}
    else:
        feeds = dict(zip(graph.input_names, (tensor.numpy() for tensor in tensors), strict=True))
    return [np.asarray(output) for output in graph.run(None, feeds)]


def expected(model: torch.nn.Module, inputs: Any) -> list[np.ndarray]:
    """What torch gives, on a copy of the inputs: the model may write into them."""
    args, kwargs = call_arguments(copy.deepcopy(inputs))
    with torch.no_grad(), evaluating(model):
        outputs = pytree.tree_leaves(model(*args, **kwargs))
    return [
        output.detach().numpy() if isinstance(output, torch.Tensor) else np.asarray(output)
        for output in outputs
        if output is not None
    ]


def tolerance(graph: ir.Model) -> float:
    """ONNX keeps attributes in float32: a slope of 0.2 is off by 1e-8, which is no fault of the translation."""
    for node in graph.graph:
        numbers = [
            a.value for key, a in node.attributes.items() if a.type == ir.AttributeType.FLOAT and key != "epsilon"
        ]
        if node.op_type in ("Selu", "HardSwish") or any(float(np.float32(number)) != number for number in numbers):
            return 1e-6
    return RTOL


def assert_same(actual: Sequence[np.ndarray], wanted: Sequence[np.ndarray], rtol: float = RTOL) -> None:
    """Equal dtypes and shapes; integers and booleans equal, floats equal to `rtol` of the tensor's scale."""
    assert len(actual) == len(wanted), f"{len(actual)} outputs for {len(wanted)}"
    for index, (got, want) in enumerate(zip(actual, wanted, strict=True)):
        assert got.dtype == want.dtype, f"output {index}: {got.dtype} for {want.dtype}"
        assert got.shape == want.shape, f"output {index}: {got.shape} for {want.shape}"
        if np.issubdtype(want.dtype, np.floating):
            finite = want[np.isfinite(want)]
            scale = max(float(np.abs(finite).max()) if finite.size else 0.0, 1e-30)
            rtol = max(rtol, 1e-6) if want.dtype == np.float32 else rtol
            np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * scale, equal_nan=True)
        else:
            np.testing.assert_array_equal(got, want)


def compare(
    model: torch.nn.Module, inputs: Any, *others: Any, dynamic: Any = "none", rtol: float = 0.0, double: bool = True
) -> ir.Model:
    """Port on `inputs`, compare there and on `others`: sizes that the tracer never saw."""
    model = copy.deepcopy(model).double() if double else model
    inputs, *others = (doubled(each) if double else each for each in (inputs, *others))
    graph = graph_of(model, copy.deepcopy(inputs), dynamic)
    run = evaluator(graph)
    for given in (inputs, *others):
        wanted = expected(model, given)
        assert_same(evaluate(run, copy.deepcopy(given)), wanted, rtol or tolerance(graph))
    return graph
