"""Every operation of a PyTorch model rounded at random: Monte Carlo arithmetic, as a dispatch mode.

The model runs in float64. The result of each operation is multiplied by 1 ± u·√k, signs at random, u being the unit
roundoff of the precision that is asked about and k the number of terms that the operation sums: the probabilistic model
of rounding errors (Higham and Mary, SIAM J. Sci. Comput. 41(5), 2019). Moving and picking numbers rounds nothing.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import torch
from torch._decomp import decomposition_table
from torch.utils._python_dispatch import TorchDispatchMode

from porter.runners import torch_control

# Fused operators whose inner steps round too.
_FUSED = {
    "native_layer_norm", "native_group_norm", "native_batch_norm", "_native_batch_norm_legit",
    "_native_batch_norm_legit_no_training", "_softmax", "_log_softmax", "_safe_softmax",
    "_scaled_dot_product_flash_attention_for_cpu", "_fused_rms_norm",
}  # fmt: skip
_MOVING = {
    "_to_copy", "abs", "amax", "amin", "arange", "cat", "ceil", "clamp", "clamp_max", "clamp_min", "clone",
    "constant_pad_nd", "copy_", "embedding", "empty", "eye", "fill_", "flip", "floor", "full", "full_like",
    "gather", "index", "index_put", "index_select", "max", "max_pool2d_with_indices", "max_pool3d_with_indices",
    "maximum", "min", "minimum", "neg", "new_empty", "new_full", "new_ones", "new_zeros", "ones", "ones_like",
    "reflection_pad1d", "reflection_pad2d", "relu", "relu_", "repeat", "replication_pad2d", "roll", "round",
    "scalar_tensor", "scatter", "sign", "sort", "stack", "topk", "tril", "triu", "trunc", "upsample_nearest2d",
    "where", "zero_", "zeros", "zeros_like",
}  # fmt: skip
# The position of the factor whose last (or, for the second, first but one) axis is summed over.
_PRODUCTS = {"mm": 0, "bmm": 0, "addmm": 1, "baddbmm": 1, "mv": 0, "addmv": 1, "dot": 0}
_SUMS = {"sum", "mean", "var", "std", "var_mean", "linalg_vector_norm", "norm", "prod", "cumsum", "logsumexp"}


class EveryOperation(TorchDispatchMode):
    """Within this mode every result is rounded at random, those in branches and loops too."""

    supports_higher_order_operators = True

    def __init__(self, seed: int, unit: float) -> None:
        super().__init__()
        self._generator = torch.Generator().manual_seed(seed)
        self._unit = unit

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if isinstance(func, torch._ops.HigherOrderOperator):
            with self:
                return torch_control.run(func, args, kwargs)
        name = func._opname
        if name in _FUSED and func in decomposition_table:
            with self:
                return decomposition_table[func](*args, **kwargs)
        result = func(*args, **kwargs)
        if name in _MOVING or func.is_view:
            return result
        for tensor in result if isinstance(result, list | tuple) else [result]:
            if isinstance(tensor, torch.Tensor) and (tensor.is_floating_point() or tensor.is_complex()):
                self._round(tensor, sqrt(_terms(name, args, tensor)))
        return result

    def _round(self, tensor: torch.Tensor, size: float) -> None:
        signs = torch.randint(0, 2, tensor.shape, generator=self._generator, dtype=torch.int8)
        tensor.mul_(1 + self._unit * size * (2.0 * signs.to(tensor.device, torch.float64) - 1))


def _terms(name: str, args: Any, result: torch.Tensor) -> int:
    """How many numbers one number of the result is the sum of."""
    if name in _PRODUCTS:
        return max(args[_PRODUCTS[name]].shape[-1], 1)
    if name == "convolution":
        transposed, weight = args[6], args[1]
        return max(weight.numel() // weight.shape[1 if transposed else 0], 1)
    if name in _SUMS or name.startswith(("avg_pool", "adaptive_avg_pool", "_adaptive_avg_pool")):
        return max(args[0].numel() // max(result.numel(), 1), 1)
    return 1
