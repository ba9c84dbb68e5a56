"""The same steps of stochastic gradient descent on both sides of a pair."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf
import torch
from torch import nn

from tests.cases.pairs import Pair, flat, noise

RATE = 0.05


def train(pair: Pair, batches: Sequence[Sequence[torch.Tensor]], *, rate: float = RATE, rtol: float = 1e-9) -> None:
    """Train both by batches of one size, and assert that every variable came to the same.

    Keras' running variance is the biased one, torch's has the factor n / (n - 1): the expected value takes it out.
    """
    start = {name: tensor.clone() for name, tensor in pair.exact.state_dict().items()}
    counted = _torch_steps(pair.exact, batches, rate)
    _keras_steps(pair, batches, rate)
    state = dict(pair.exact.state_dict())
    for path, (count, momentum) in counted.items():
        name = f"{path}.running_var"
        kept = (1 - momentum) ** len(batches) * start[name]
        state[name] = kept + (state[name] - kept) * (count - 1) / count
    compare_variables(pair, state, rtol=rtol)
    moved = {name for name, tensor in pair.exact.named_parameters() if not torch.equal(tensor, start[name])}
    assert moved == {name for name, tensor in pair.exact.named_parameters() if tensor.requires_grad}


def compare_variables(pair: Pair, state: dict[str, torch.Tensor], *, rtol: float = 1e-9) -> None:
    """Assert that every variable of the port is what this state of the source makes it."""
    for name, expected in pair.expected(state).items():
        found = np.asarray(pair.variable(name))
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-11, err_msg=f"{name}\n{pair.source}")


def _torch_steps(model: nn.Module, batches: Sequence[Sequence[torch.Tensor]], rate: float) -> dict[str, Any]:
    """Train, in training mode but for what was set otherwise; {BatchNorm: (numbers per channel, momentum)}."""
    counted: dict[str, Any] = {}
    for path, module in model.named_modules():
        if isinstance(module, nn.modules.batchnorm._BatchNorm) and module.training and module.track_running_stats:
            module.register_forward_hook(
                lambda m, args, _, path=path: counted.update(
                    {path: (args[0].numel() // args[0].shape[1], m.momentum)}
                )
            )
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=rate)
    for inputs in batches:
        outputs = flat(model(*inputs))
        loss = sum(((y - _goal(y.shape, index)) ** 2).sum() for index, y in enumerate(outputs))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return counted


def _keras_steps(pair: Pair, batches: Sequence[Sequence[torch.Tensor]], rate: float) -> None:
    for inputs in batches:
        with tf.GradientTape() as tape:
            loss = 0.0
            for index, y in enumerate(flat(run_training(pair, inputs))):
                permutation = pair.generated.outputs[index].permutation
                shape = [y.shape[axis] for axis in np.argsort(permutation)]
                loss += tf.reduce_sum((y - _goal(shape, index).numpy().transpose(permutation)) ** 2)
        variables = pair.model.trainable_variables
        for variable, gradient in zip(variables, tape.gradient(loss, variables), strict=True):
            variable.assign_sub(rate * tf.convert_to_tensor(gradient))


def run_training(pair: Pair, inputs: Sequence[torch.Tensor]) -> Any:
    """The port in training mode."""
    takes = "training" in pair.model.call.__code__.co_varnames
    return pair.model(*pair.feeds(inputs), **({"training": True} if takes else {}))


def _goal(shape: Sequence[int], index: int) -> torch.Tensor:
    return noise(*shape, seed=100 + index)
