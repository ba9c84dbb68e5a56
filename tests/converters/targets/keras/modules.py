"""Runs a torch module and the Keras source that porter writes for it side by side, both in float64."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir
import torch

from porter.converters.frontends.torch.export import export
from porter.converters.frontends.torch.translate import translate
from porter.converters.pipeline import Generated, generate
from tests.converters.targets.keras.nodes import loaded


class OfOne(torch.nn.Module):
    """A function or module of one tensor, as a child."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


class OfTwo(OfOne):
    """A function or module of two tensors, as a child."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:  # type: ignore[override]
        return self.function(x, y)


class Each(torch.nn.Module):
    """Every child on the same inputs: a whole family in one port."""

    def __init__(self, *children: torch.nn.Module) -> None:
        super().__init__()
        self.children_ = torch.nn.ModuleList(children)

    def forward(self, *inputs: torch.Tensor) -> list[Any]:
        return [child(*inputs) for child in self.children_]


def randomized(module: torch.nn.Module, seed: int = 0) -> torch.nn.Module:
    """The module with weights and statistics that are neither 0 nor 1 anywhere, in inference mode."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
            if tensor.is_floating_point():
                noise = torch.randn(tensor.shape, generator=generator)
                tensor.copy_(noise.abs() + 0.5 if name.endswith("running_var") else noise * 0.5 + 0.1)
    return module.eval()


def port_of(
    module: torch.nn.Module, inputs: Sequence[torch.Tensor], *, native: bool, dynamic: Any
) -> tuple[Any, Generated]:
    """The Keras model that porter writes, built and with its weights."""
    graph: ir.Model = translate(
        export(module, tuple(inputs), dynamic), module, dynamic if isinstance(dynamic, dict) else None
    )
    arrays = {
        name: value.const_value.numpy()
        for name, value in graph.graph.initializers.items()
        if value.const_value is not None
    }
    generated = generate(graph, native=native)
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
    """Assert that the port computes what torch computes, eagerly and traced with unknown sizes; the source.

    So must the gradients of the inputs be, of a sum with fixed weights.

    `others` are inputs of further sizes, which the tracer did not see.
    """
    import tensorflow as tf

    module = randomized({1: OfOne, 2: OfTwo}[len(inputs)](module) if len(inputs) < 3 else module)
    port, generated = port_of(
        module, [x.float() if x.is_floating_point() else x for x in inputs], native=native, dynamic=dynamic
    )
    exact = copy.deepcopy(module).double()
    sizes = [
        [None if not isinstance(spec.shape[a], int) else spec.shape[a] for a in spec.permutation]
        for spec in generated.inputs
    ]
    signature = [tf.TensorSpec(shape, x.numpy().dtype) for shape, x in zip(sizes, inputs, strict=True)]
    traced = tf.function(port, input_signature=signature)
    for given in (inputs, *others):
        with torch.no_grad():
            wanted = _listed(exact(*[x.clone() for x in given]))
        feeds = [
            tf.constant(x.numpy().transpose(spec.permutation)) for x, spec in zip(given, generated.inputs, strict=True)
        ]
        for run in (port, traced) if given is inputs else (traced,):
            pairs = zip(_listed(run(*feeds)), wanted, generated.outputs, strict=True)
            for index, (got, right, spec) in enumerate(pairs):
                expected, says = right.numpy().transpose(spec.permutation), f"output {index}\n{generated.source}"
                assert tuple(got.shape) == expected.shape, f"{got.shape} is not {expected.shape}, {says}"
                single = expected.dtype == np.float32  # what torch makes of whole numbers, which have no double form
                kept = expected.dtype if not single else np.float64
                assert got.dtype == kept, f"{got.dtype} is not {kept}, {says}"
                near, close = (max(rtol, 1e-6), max(atol, 1e-6)) if single else (rtol, atol)
                np.testing.assert_allclose(
                    np.asarray(got), expected, rtol=near, atol=close, equal_nan=True, err_msg=says
                )
    if gradients:
        _check_gradients(exact, traced, inputs, generated, rtol=rtol, atol=10 * atol)
    return generated.source


def _check_gradients(
    exact: torch.nn.Module,
    traced: Any,
    inputs: Sequence[torch.Tensor],
    generated: Generated,
    *,
    rtol: float,
    atol: float,
) -> None:
    import tensorflow as tf

    given = [x.clone().requires_grad_(x.is_floating_point()) for x in inputs]
    leaves = [x for x in given if x.requires_grad]
    outputs = _listed(exact(*given))
    cotangents = [noise(*y.shape, seed=7 + index) for index, y in enumerate(outputs)]
    real = [index for index, y in enumerate(outputs) if y.requires_grad]
    if not leaves or not real:
        return
    wanted = torch.autograd.grad(
        [outputs[index] for index in real], leaves, [cotangents[index] for index in real], allow_unused=True
    )
    feeds = [tf.Variable(x.numpy().transpose(s.permutation)) for x, s in zip(inputs, generated.inputs, strict=True)]
    sources = [feed for feed, x in zip(feeds, given, strict=True) if x.requires_grad]
    orders = [s.permutation for x, s in zip(given, generated.inputs, strict=True) if x.requires_grad]
    with tf.GradientTape() as tape:
        results = _listed(traced(*[feed.value() for feed in feeds]))
        total = tf.add_n(
            [
                tf.reduce_sum(
                    results[index] * cotangents[index].numpy().transpose(generated.outputs[index].permutation)
                )
                for index in real
            ]
        )
    for got, right, order in zip(tape.gradient(total, sources), wanted, orders, strict=True):
        expected = None if right is None else right.numpy().transpose(order)
        if got is None or expected is None:
            missing = got if expected is None else expected
            assert missing is None or not np.any(missing), f"only one side has a gradient\n{generated.source}"
            continue
        message = f"gradient\n{generated.source}"
        np.testing.assert_allclose(
            tf.convert_to_tensor(got), expected, rtol=rtol, atol=atol, equal_nan=True, err_msg=message
        )


def _listed(values: Any) -> list[Any]:
    return [leaf for value in values for leaf in _listed(value)] if isinstance(values, list | tuple) else [values]


def noise(*shape: int, seed: int = 1) -> torch.Tensor:
    """Normal doubles, both signs."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
