"""Weights that a test can trust: seeded, and nowhere zero or one by default.

A fresh model hides errors: a new BatchNorm is the identity and a zero bias may be dropped unnoticed. Here every tensor
gets a value that matters.
"""

import math

import torch
from torch import nn

_TRANSPOSED = (nn.ConvTranspose1d, nn.ConvTranspose2d, nn.ConvTranspose3d)
_SCALES = ("weight", "gamma", "scale")
_OFFSETS = ("bias", "beta")


def seed_weights(model: nn.Module, seed: int = 0, *, gain: float = 1.0) -> nn.Module:
    """Fill every parameter and every running statistic in place, and return the model in eval mode.

    Matrices and kernels are normal with variance `gain / fan_in`: 1 suits residual and linear paths, 2 suits plain
    stacks of ReLU. Scales of normalisations lie in [0.5, 1.5], biases and running means are N(0, 0.1), running
    variances lie in [0.5, 1.5]. Other buffers (position tables, masks) are left alone. The same seed gives the same
    weights on any machine.
    """
    generator = torch.Generator().manual_seed(seed)

    def normal(tensor: torch.Tensor, std: float) -> None:
        tensor.copy_(torch.randn(tensor.shape, generator=generator) * std)

    def around_one(tensor: torch.Tensor) -> None:
        tensor.copy_(torch.rand(tensor.shape, generator=generator) + 0.5)

    done: set[int] = set()  # tied parameters are met twice
    with torch.no_grad():
        for module in model.modules():
            for name, parameter in module.named_parameters(recurse=False):
                if id(parameter) in done:
                    continue
                done.add(id(parameter))
                vector = parameter.ndim <= 1
                if name in _SCALES and (vector or name != "weight"):
                    around_one(parameter)
                elif vector or name in _OFFSETS:
                    normal(parameter, 0.1)
                else:
                    normal(parameter, math.sqrt(gain / _fan_in(module, parameter)))
            for name, buffer in module.named_buffers(recurse=False):
                if name == "running_mean":
                    normal(buffer, 0.1)
                elif name == "running_var":
                    around_one(buffer)
    return model.eval()


def _fan_in(module: nn.Module, weight: torch.Tensor) -> float:
    """How many products are summed into one output element."""
    if isinstance(module, _TRANSPOSED):
        # Stored (in, out / groups, *kernel); each output sees only every stride-th tap of the kernel.
        per_tap = weight.shape[0] / module.groups
        return max(1.0, per_tap * math.prod(weight.shape[2:]) / math.prod(module.stride))
    return math.prod(weight.shape[1:])
