"""One conversion to PyTorch in a tool's own environment: `python peer_to_torch_run.py TOOL MODEL[@small] FOLDER`.

The last line printed is a JSON object. This file needs numpy, both frameworks and the tool, and of porter only the
definitions of the zoo (but TOOL may be porter, to compare).
"""

from __future__ import annotations

import contextlib
import importlib
import json
import os
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

# The newest that each takes: onnx2torch lacks the reductions and paddings of later ones.
OPSETS = {"onnx2torch": 13, "onnx2pytorch": 18}
ROUNDS = 15


def _onnx(model: Any, inputs: dict[str, np.ndarray], folder: Path, opset: int) -> Path:
    import tensorflow as tf
    import tf2onnx

    spec = [tf.TensorSpec((None, *array.shape[1:]), array.dtype, name=name) for name, array in inputs.items()]
    file = folder / "model.onnx"
    tf2onnx.convert.from_function(
        tf.function(keras_call(model, tuple(inputs)), input_signature=spec),
        input_signature=spec,
        opset=opset,
        output_path=str(file),
    )
    return file


def onnx2torch(model: Any, inputs: dict[str, np.ndarray], folder: Path) -> Any:
    import onnx2torch

    return onnx2torch.convert(str(_onnx(model, inputs, folder, OPSETS["onnx2torch"])))


def onnx2pytorch(model: Any, inputs: dict[str, np.ndarray], folder: Path) -> Any:
    import onnx
    from onnx2pytorch import ConvertModel

    return ConvertModel(onnx.load(str(_onnx(model, inputs, folder, OPSETS["onnx2pytorch"]))), experimental=True)


def porter(model: Any, inputs: dict[str, np.ndarray], folder: Path) -> Any:
    import porter

    return porter.port(model, inputs, to="torch", layout="source", out=folder / "port", force=True).load()


TOOLS = {tool.__name__: tool for tool in (onnx2torch, onnx2pytorch, porter)}


def keras_call(model: Any, names: tuple[str, ...]) -> Callable[..., Any]:
    """The model as a function of one tensor for each name."""
    import keras

    functional = isinstance(model, keras.Model) and hasattr(model, "_inputs_struct")

    def call(*tensors: Any) -> Any:
        if len(names) == 1:
            return model(tensors[0], training=False)
        named = dict(zip(names, tensors, strict=True))
        return model(named, training=False) if functional else model(**named)

    return call


def largest_error(expected: list[np.ndarray], actual: list[np.ndarray]) -> float:
    """Over all outputs, as a share of the largest value of each.

    Raises ValueError when the numbers or the shapes of the outputs differ.
    """
    errors = []
    for ours, theirs in zip(expected, actual, strict=True):
        if ours.shape != theirs.shape:
            raise ValueError(f"an output is {theirs.shape} instead of {ours.shape}")
        errors.append(float(np.abs(ours - theirs).max() / np.abs(ours).max()))
    return max(errors)


def names_kept(model: Any, converted: Any) -> tuple[int, int]:
    """(layers with weights whose name is a part of the path of a module with weights, all layers with weights)."""
    owners = {
        name for name, module in converted.named_modules() if next(module.parameters(recurse=False), None) is not None
    }
    parts = {part for name in owners for part in name.replace("/", ".").split(".")}
    layers = [layer for layer in model._flatten_layers() if layer.weights and not list(layer._layers)]
    # Keras appends _1 to the name of a layer that is called once more, as it is when a tf.function is made.
    return sum(bool({layer.name, f"{layer.name}_1"} & parts) for layer in layers), len(layers)


def ratio(first: Callable[[], Any], second: Callable[[], Any]) -> float:
    """Median time of `first` over that of `second`, run in turn."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(ROUNDS):
        for function, found in zip((first, second), times, strict=True):
            start = time.perf_counter()
            function()
            found.append(time.perf_counter() - start)
    return statistics.median(times[0][3:]) / statistics.median(times[1][3:])


def _memory() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def main(tool: str, reference: str, folder: Path) -> None:
    import keras
    import tensorflow as tf
    import torch

    from porter.zoo import catalog

    tf.config.threading.set_intra_op_parallelism_threads(1)
    torch.set_num_threads(1)
    name, _, small = reference.partition("@")
    entry = catalog.find(name, to="torch")
    model, inputs = entry.make(small=bool(small)), entry.inputs(small=bool(small), batch=1)
    # What is imported before the clock starts.
    for module in (tool, "tf2onnx"):
        with contextlib.suppress(ImportError):
            importlib.import_module(module)
    memory, begin = _memory(), sum(os.times()[:4])
    converted = TOOLS[tool](model, inputs, folder)
    cpu, memory = sum(os.times()[:4]) - begin, _memory() - memory

    function = tf.function(keras_call(model, tuple(inputs)))
    tensors = [torch.from_numpy(array) for array in inputs.values()]
    constants = [tf.constant(array) for array in inputs.values()]
    with torch.no_grad():
        converted = converted.eval()
        actual = converted(*tensors)
        expected = [np.asarray(y) for y in keras.tree.flatten(function(*constants))]
        answer = {
            "cpu": cpu,
            "memory": memory,
            "norms": sum(isinstance(module, torch.nn.modules.batchnorm._BatchNorm) for module in converted.modules()),
            "norms_source": sum(isinstance(x, keras.layers.BatchNormalization) for x in model._flatten_layers()),
            "error": largest_error(expected, [np.asarray(y) for y in keras.tree.flatten(actual)]),
            "ratio": ratio(lambda: converted(*tensors), lambda: function(*constants)),
        }
    answer["names"], answer["names_source"] = names_kept(model, converted)
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
