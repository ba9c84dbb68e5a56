"""Runs one ONNX graph as the PyTorch source that porter writes for it, and as ONNX defines it; torch modules too."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch

from porter.converters.frontends.torch.export import export
from porter.converters.frontends.torch.translate import translate
from porter.converters.opset import KIND, TRAINABLE
from porter.converters.pipeline import Generated, generate
from tests.converters.targets.keras.modules import OfOne, OfTwo, noise, randomized
from tests.converters.targets.keras.nodes import Case, expected, graph_of


@contextmanager
def doubles() -> Iterator[None]:
    """What names no type is double."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def loaded(generated: Generated, arrays: dict[str, np.ndarray]) -> torch.nn.Module:
    """The generated class in double precision, with its weights, in inference mode."""
    namespace: dict[str, Any] = {"__name__": "generated", "__file__": "model.py"}
    exec(compile(generated.source, "model.py", "exec"), namespace)
    model: torch.nn.Module = namespace[generated.root]()
    state = {name: torch.from_numpy(np.array(array)) for name, array in generated.arrays(arrays).items()}
    missing, unexpected = model.load_state_dict(state, strict=False)
    assert not unexpected and all(name.endswith("num_batches_tracked") for name in missing), (missing, unexpected)
    return model.double().eval()


def ported(
    model: onnx.ModelProto, weights: Sequence[str] = (), *, native: bool = False
) -> tuple[torch.nn.Module, Generated]:
    """The PyTorch model that porter writes."""
    graph = ir.serde.deserialize_model(model)
    for name, value in graph.graph.initializers.items():
        value.metadata_props[KIND] = "parameter" if name in weights else "constant"
        value.metadata_props[TRAINABLE] = "1" if name in weights else "0"
    arrays = {name: value.const_value.numpy() for name, value in graph.graph.initializers.items()}
    generated = generate(graph, target="torch", native=native)
    return loaded(generated, arrays), generated


def run(
    case: Case, *, spatial: bool = False, dynamic: bool = True, right: list[np.ndarray] | None = None
) -> tuple[list[np.ndarray], list[np.ndarray], str]:
    """(what the port computes, what ONNX computes unless it is given, the source), both from the same doubles."""
    port, generated = ported(graph_of(case, spatial=spatial, dynamic=dynamic), case.weights)
    absent = (*case.weights, *case.constants)
    feeds = [array for name, array in case.inputs.items() if array is not None and name not in absent]
    with doubles(), torch.no_grad():
        got = port(*(torch.from_numpy(np.array(array)) for array in feeds))
    return [value.numpy() for value in listed(got)], right or expected(case), generated.source


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


def port_of(
    module: torch.nn.Module, inputs: Sequence[torch.Tensor], *, native: bool, dynamic: Any
) -> tuple[torch.nn.Module, Generated]:
    """The PyTorch model that porter writes for a torch module."""
    graph = translate(export(module, tuple(inputs), dynamic), module, dynamic if isinstance(dynamic, dict) else None)
    arrays = {n: v.const_value.numpy() for n, v in graph.graph.initializers.items() if v.const_value is not None}
    generated = generate(graph, target="torch", native=native)
    return loaded(generated, arrays), generated


def check_module(
    module: Any,
    *inputs: torch.Tensor,
    native: bool = True,
    dynamic: Any = "auto",
    others: Sequence[Sequence[torch.Tensor]] = (),
    rtol: float = 1e-12,
    atol: float = 1e-12,
    gradients: bool = True,
) -> str:
    """Assert that the port computes what the module computes, and its gradients; the source.

    `others` are inputs of further sizes, which the tracer did not see.
    """
    module = randomized({1: OfOne, 2: OfTwo}[len(inputs)](module))
    given = [x.float() if x.is_floating_point() else x for x in inputs]
    port, generated = port_of(module, given, native=native, dynamic=dynamic)
    exact = copy.deepcopy(module).double()
    for feed in (inputs, *others):
        with doubles(), torch.no_grad():
            pairs = zip(listed(port(*feed)), listed(exact(*feed)), strict=True)
            for got, right in pairs:
                assert got.shape == right.shape, f"{got.shape} is not {right.shape}\n{generated.source}"
                torch.testing.assert_close(got, right, rtol=rtol, atol=atol, equal_nan=True, msg=generated.source)
    if gradients and all(x.is_floating_point() for x in inputs):
        _check_gradients(exact, port, inputs, generated.source, rtol=rtol, atol=10 * atol)
    return generated.source


def _check_gradients(
    exact: torch.nn.Module,
    port: torch.nn.Module,
    inputs: Sequence[torch.Tensor],
    source: str,
    *,
    rtol: float,
    atol: float,
) -> None:
    found = []
    for model in (exact, port):
        leaves = [x.clone().requires_grad_() for x in inputs]
        with doubles():
            outputs = [y for y in listed(model(*leaves)) if y.is_floating_point() and y.requires_grad]
        cotangents = [noise(*y.shape, seed=7 + index) for index, y in enumerate(outputs)]
        found.append(torch.autograd.grad(outputs, leaves, cotangents, allow_unused=True) if outputs else ())
    for right, got in zip(*found, strict=True):
        assert (right is None) == (got is None), f"only one side has a gradient\n{source}"
        if right is not None:
            torch.testing.assert_close(got, right, rtol=rtol, atol=atol, equal_nan=True, msg=f"gradient\n{source}")


def listed(values: Any) -> list[torch.Tensor]:
    """The tensors in what a model gives."""
    return [leaf for value in values for leaf in listed(value)] if isinstance(values, list | tuple) else [values]
