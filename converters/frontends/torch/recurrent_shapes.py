"""Recurrent layers and attention kept whole, with sizes free, while torch traces a model.

torch learns the shapes of a recurrent layer by running a decomposition that loops over the time steps, which fixes the
length of the sequence to that of the example. The fused kernels of `nn.MultiheadAttention` and
`nn.TransformerEncoderLayer` hide the layers inside them. Both are set aside for the time of an export.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

_RECURRENT = ("lstm", "gru", "rnn_tanh", "rnn_relu")


def _shapes(
    x: Tensor,
    states: Tensor | Sequence[Tensor],
    params: Sequence[Tensor],
    has_biases: bool,
    num_layers: int,
    dropout: float,
    train: bool,
    bidirectional: bool,
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """The outputs of a recurrent operator by shape alone: the sequence, then the final states."""
    given = [states] if isinstance(states, Tensor) else list(states)
    width = given[0].shape[-1] * (2 if bidirectional else 1)
    return (x.new_empty((*x.shape[:2], width)), *(torch.empty_like(state) for state in given))


@contextmanager
def layers_kept_whole() -> Iterator[None]:
    """Recurrent operators with the length of their sequence free, and no fused attention kernels; undone on leaving."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    operators = [getattr(torch.ops.aten, name).input for name in _RECURRENT]
    before: list[Any] = [operator.py_kernels.get(key) for operator in operators]
    fused = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    for operator in operators:
        operator.py_kernels[key] = _shapes
        operator._dispatch_cache.clear()
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(fused)
        for operator, kernel in zip(operators, before, strict=True):
            if kernel is None:
                del operator.py_kernels[key]
            else:
                operator.py_kernels[key] = kernel
            operator._dispatch_cache.clear()
