"""A torch module and its port, made in this process and compared in float64."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import tensorflow as tf
import torch
from torch import nn

from porter.converters.frontends.torch.export import export
from porter.converters.frontends.torch.translate import translate
from porter.converters.pipeline import Generated, generate
from tests.converters.targets.keras.modules import randomized


class Each(nn.Module):
    """Every child on the same inputs: a whole family of layers in one port."""

    def __init__(self, *children: nn.Module) -> None:
        super().__init__()
        self.layers = nn.ModuleList(children)

    def forward(self, *inputs: torch.Tensor) -> list[torch.Tensor]:
        return [layer(*inputs) for layer in self.layers]


class Of(nn.Module):
    """A function of one tensor as a module."""

    def __init__(self, function: Callable[[torch.Tensor], Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> Any:
        return self.function(x)


class OfTwo(Of):
    """A function of two tensors as a module."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> Any:  # type: ignore[override]
        return self.function(x, y)


@dataclass
class Pair:
    """`exact` is the source in float64 and `model` the port, which `namespace` defines."""

    exact: nn.Module
    model: Any
    generated: Generated
    constants: dict[str, np.ndarray]
    namespace: dict[str, Any]

    @property
    def source(self) -> str:
        return self.generated.source

    @property
    def classes(self) -> str:
        """The source without the functions that build and load, which every port has."""
        return self.source.partition("def build(")[0]

    def variable(self, name: str) -> Any:
        return self.namespace["find"](self.model, name)

    def feeds(self, inputs: Sequence[torch.Tensor]) -> list[Any]:
        """Inputs in the port's axis order."""
        return [
            tf.constant(x.numpy().transpose(spec.permutation))
            for x, spec in zip(inputs, self.generated.inputs, strict=True)
        ]

    def expected(self, state: dict[str, torch.Tensor]) -> dict[str, np.ndarray]:
        """The port's variables, as a state dict of the source makes them."""
        return self.generated.arrays({**self.constants, **{name: t.detach().numpy() for name, t in state.items()}})

    def compare(self, found: Any, wanted: Any, *, rtol: float = 1e-9, atol: float = 1e-9) -> None:
        """Assert equal types, shapes, NaNs and elements; whole numbers and truth values are equal or not."""
        pairs = zip(flat(found), flat(wanted), self.generated.outputs, strict=True)
        for index, (got, right, spec) in enumerate(pairs):
            exact, found_array = right.numpy().transpose(spec.permutation), np.asarray(got)
            says = f"output {index}\n{self.source}"
            assert found_array.shape == exact.shape, f"{found_array.shape} is not {exact.shape}, {says}"
            assert found_array.dtype == exact.dtype, f"{found_array.dtype} is not {exact.dtype}, {says}"
            if exact.dtype.kind == "f":
                scale = np.nanmax(np.abs(exact[np.isfinite(exact)]), initial=0)
                np.testing.assert_allclose(found_array, exact, rtol=rtol, atol=atol * scale, err_msg=says)
            else:
                np.testing.assert_array_equal(found_array, exact, err_msg=says)

    def check(self, *batches: Sequence[torch.Tensor], **tolerance: float) -> None:
        """Compare on every batch, traced once with unknown sizes, and on the first one eagerly as well."""
        specs = self.generated.inputs
        sizes = [[d if isinstance(d := spec.shape[a], int) else None for a in spec.permutation] for spec in specs]
        types = [x.numpy().dtype for x in batches[0]]
        traced = tf.function(
            self.model, input_signature=[tf.TensorSpec(s, t) for s, t in zip(sizes, types, strict=True)]
        )
        for index, inputs in enumerate(batches):
            with torch.no_grad():
                wanted = self.exact(*[x.clone() for x in inputs])
            if index == 0:
                self.compare(self.model(*self.feeds(inputs)), wanted, **tolerance)
            self.compare(traced(*self.feeds(inputs)), wanted, **tolerance)


def port(module: nn.Module, *inputs: torch.Tensor, dynamic: Any = "auto", fresh: bool = False) -> Pair:
    """The module and its port. `fresh` keeps the module's own weights, which are else drawn anew."""
    module = module if fresh else randomized(module)
    examples = tuple(x.float() if x.is_floating_point() else x for x in inputs)
    graph = translate(export(module, examples, dynamic), module, dynamic if isinstance(dynamic, dict) else None)
    constants = {
        name: value.const_value.numpy()
        for name, value in graph.graph.initializers.items()
        if value.const_value is not None
    }
    generated = generate(graph)
    namespace: dict[str, Any] = {"__name__": "generated"}
    exec(compile(generated.source, "model.py", "exec"), namespace)
    model = _made(namespace)
    for name, array in generated.arrays(constants).items():
        namespace["find"](model, name).assign(array)
    return Pair(copy.deepcopy(module).double(), model, generated, constants, namespace)


def _made(namespace: dict[str, Any]) -> Any:
    """What `build` gives before any weights are loaded from a file."""
    namespace["load_weights"] = lambda *_, **__: None
    namespace["__file__"] = "model.py"
    return namespace["build"]()


def check(
    module: nn.Module,
    *inputs: torch.Tensor,
    others: Sequence[Sequence[torch.Tensor]] = (),
    dynamic: Any = "auto",
    **tolerance: float,
) -> str:
    """Port a module and compare it on these inputs, and on others that the tracer never saw; its classes."""
    pair = port(module, *inputs, dynamic=dynamic)
    pair.check(inputs, *others, **tolerance)
    return pair.classes


def flat(values: Any) -> list[Any]:
    return [leaf for value in values for leaf in flat(value)] if isinstance(values, list | tuple) else [values]


def noise(*shape: int, seed: int = 1) -> torch.Tensor:
    """Normal doubles, both signs."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
