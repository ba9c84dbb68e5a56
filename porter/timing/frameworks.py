"""Models as callables to time, and the settings that must be the same on both sides.

Inputs are put on the device once, outside the timed call: what is timed is the model.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from porter.runners.base import Array, Call
from porter.runners.keras import keras_call
from porter.runners.torch import torch_call
from porter.timing.measure import Side


def torch_side(
    module: Any,
    inputs: Sequence[Array],
    *,
    device: str = "cpu",
    name: str | None = None,
    input_names: Sequence[str | None] | None = None,
    call: Call | None = None,
) -> Side:
    """The module eagerly, in eval mode and without gradients.

    Args:
        module: the model; it is copied and never changed.
        inputs: its flat inputs, in its own axis order.
        device: where to run.
        name: what the report calls it.
        input_names: for each input the keyword to pass it by, or None for a positional one.
        call: `call(module, tensors)` instead.
    """
    import copy

    import torch

    model = copy.deepcopy(module).eval().to(device)
    tensors = [torch.tensor(x, device=device) for x in inputs]

    forward = call or torch_call(input_names)

    def run() -> Any:
        with torch.no_grad():
            return forward(model, tensors)

    sync = torch.cuda.synchronize if device.startswith("cuda") else None
    settings = {"framework": f"torch {torch.__version__}", "mode": "eager, no_grad", "device": device}
    return Side(name or f"torch {type(module).__name__}", run, sync, settings)


def keras_side(
    model: Any,
    inputs: Sequence[Array],
    *,
    mode: Literal["function", "xla", "eager"] = "function",
    device: str = "CPU:0",
    name: str | None = None,
    input_names: Sequence[str | None] | None = None,
    call: Call | None = None,
) -> Side:
    """The model as a tf.function, compiled by XLA with `xla`.

    Args:
        model: the Keras model.
        inputs: its flat inputs, in its own axis order.
        mode: how to run it.
        device: a TensorFlow device.
        name: what the report calls it.
        input_names: for each input the keyword to pass it by, or None for a positional one.
        call: `call(model, tensors)` instead.
    """
    import keras
    import tensorflow as tf

    forward = call or keras_call(input_names)
    with tf.device(device):
        tensors = [tf.constant(x) for x in inputs]

    def step(*values: Any) -> Any:
        return forward(model, values)

    function = step if mode == "eager" else tf.function(step, jit_compile=mode == "xla")

    def run() -> Any:
        with tf.device(device):
            return function(*tensors)

    sync = None if device.upper().startswith("CPU") else tf.test.experimental.sync_devices
    settings = {"framework": f"keras {keras.__version__}, tensorflow {tf.__version__}", "mode": mode, "device": device}
    return Side(name or f"keras {type(model).__name__}", run, sync, settings)


def equal_threads(count: int | None = None) -> dict[str, Any]:
    """Give both frameworks the same number of threads within an operation, and say how many each has.

    TensorFlow takes a number only before its first operation; once it runs, torch is set to what TensorFlow has.

    Args:
        count: how many (default: what TensorFlow has, or every core that this process may use).
    """
    import tensorflow as tf
    import torch

    threading = tf.config.threading
    refused = None
    if count is not None:
        try:
            threading.set_intra_op_parallelism_threads(count)
        except RuntimeError:
            refused = f"{count} threads asked for, but TensorFlow was already running"
    # Zero is TensorFlow's word for every core.
    have = threading.get_intra_op_parallelism_threads() or _cores()
    torch.set_num_threads(have)
    settings = {"threads torch": torch.get_num_threads(), "threads tensorflow": have}
    return settings if refused is None else {**settings, "threads note": refused}


def _cores() -> int:
    """The cores that this process may use, where the system says so."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
