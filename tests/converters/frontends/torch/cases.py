"""What a row of the operator tables is, and the inputs that rows are made of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

aten = torch.ops.aten


@dataclass(frozen=True)
class Row:
    """One use of one ATen operator: `function(*inputs)` must be traced to `op`, and ported right.

    With `also`, sizes vary and these inputs, which the tracer never saw, are compared too.
    """

    op: str
    function: Callable[..., Any]
    inputs: tuple[Any, ...]
    also: tuple[tuple[Any, ...], ...] = field(default=())
    double: bool = True

    @property
    def name(self) -> str:
        """The operator with its overload."""
        return self.op if "." in self.op else f"{self.op}.default"


def row(op: str, function: Callable[..., Any], *inputs: Any, also: Any = (), double: bool = True) -> Row:
    """A row; `also` is one tuple of inputs or a list of them."""
    return Row(op, function, inputs, tuple(also) if isinstance(also, list) else (also,) if also else (), double)


def floats(*shape: int, seed: int = 0) -> Tensor:
    """Normal float64 numbers, both signs."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed + 7), dtype=torch.float64)


def positive(*shape: int, seed: int = 0) -> Tensor:
    """Float64 numbers from 0.1 to 1."""
    return 0.1 + 0.9 * torch.rand(*shape, generator=torch.Generator().manual_seed(seed + 7), dtype=torch.float64)


def ints(*shape: int, low: int = -5, high: int = 6, seed: int = 0) -> Tensor:
    """Int64 numbers from low up to high, that excluded."""
    return torch.randint(low, high, shape, generator=torch.Generator().manual_seed(seed + 7))


def flags(*shape: int, seed: int = 0) -> Tensor:
    """Booleans."""
    return ints(*shape, low=0, high=2, seed=seed) == 1


def seeded(module: nn.Module) -> nn.Module:
    """The module in eval mode with float64 weights that no default could stand for."""
    generator = torch.Generator().manual_seed(3)
    for name, tensor in [*module.named_parameters(), *module.named_buffers()]:
        if tensor.is_floating_point():
            fresh = torch.rand(tensor.shape, generator=generator, dtype=torch.float64)
            tensor.data = fresh + 0.5 if "var" in name else fresh - 0.3
    return module.eval()
