"""One conversion by another tool, in that tool's own environment: `python peer_run.py TOOL MODEL FOLDER`.

FOLDER holds model.onnx, inputs.npz and outputs.npz (what PyTorch gives). The last line printed is a JSON object. This
file needs numpy and the tool, and of porter only the definitions of the zoo (but TOOL may be porter, to compare).
"""

import contextlib
import importlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np


def nobuco(model: str, folder: Path) -> Any:
    import nobuco
    import torch

    module = importlib.import_module(f"porter.zoo.torch.{model}").make(small=True)
    arguments = {name: torch.from_numpy(array) for name, array in np.load(folder / "inputs.npz").items()}
    order = nobuco.ChannelOrder.PYTORCH
    return nobuco.pytorch_to_keras(
        module, args=list(arguments.values()), inputs_channel_order=order, outputs_channel_order=order
    )


def onnx2tf(model: str, folder: Path) -> Any:
    import onnx2tf

    # Images that it would download to run the model on while it converts; any do.
    images = np.random.default_rng(0).random((20, 128, 128, 3), dtype=np.float32)
    np.save("calibration_image_sample_data_20x128x128x3_float32.npy", images)
    return onnx2tf.convert(
        input_onnx_file_path=str(folder / "model.onnx"), output_folder_path=str(folder / "tf"), non_verbose=True
    )


def onnx2kerastl(model: str, folder: Path) -> Any:
    import onnx
    from onnx2kerastl import onnx_to_keras

    graph = onnx.load(folder / "model.onnx")
    return onnx_to_keras(graph, [value.name for value in graph.graph.input])


def onnx2keras(model: str, folder: Path) -> Any:
    import onnx
    from onnx2keras import onnx_to_keras

    graph = onnx.load(folder / "model.onnx")
    return onnx_to_keras(graph, [value.name for value in graph.graph.input])


def porter(model: str, folder: Path) -> Any:
    import porter
    from porter.zoo import catalog

    entry = catalog.find(model)
    inputs = dict(np.load(folder / "inputs.npz"))
    port = porter.port(entry.make(small=True), inputs, dynamic=entry.dynamic, out=folder / "port", force=True)
    return port.load()


TOOLS = {tool.__name__: tool for tool in (nobuco, onnx2tf, onnx2kerastl, onnx2keras, porter)}


def largest_error(model: Any, folder: Path) -> float | None:
    """Over all outputs, whichever order of axes the tool chose; None when no output has the source's size."""
    given = list(np.load(folder / "inputs.npz").values())
    # A model that is a class and no graph has no list of inputs; porter's takes images channels last.
    shapes = (
        [value.shape for value in model.inputs]
        if getattr(model, "inputs", None)
        else [(None, None, None, x.shape[1]) for x in given]
    )
    inputs = [
        np.moveaxis(array, 1, -1) if array.ndim == 4 and shape[-1] == array.shape[1] != shape[1] else array
        for array, shape in zip(given, shapes, strict=False)
    ]
    found = model(inputs if len(inputs) > 1 else inputs[0])
    outputs = [np.asarray(y) for y in (found if isinstance(found, list | tuple) else [found])]
    expected = list(np.load(folder / "outputs.npz").values())
    errors = []
    for ours, theirs in zip(expected, outputs, strict=True):
        orders = [theirs, np.moveaxis(theirs, -1, 1)] if theirs.ndim == 4 else [theirs]
        fitting = [float(np.abs(order - ours).max()) for order in orders if order.shape == ours.shape]
        if not fitting:
            return None
        errors.append(min(fitting))
    return max(errors)


def _in_source(file: Path) -> int:
    return file.read_text("utf-8").count("ops.transpose(")


def main(tool: str, model: str, folder: Path) -> None:
    # What is imported before the clock starts; porter by itself imports frameworks when it needs them.
    for name in (tool, "torch", "keras", "tensorflow"):
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    begin = sum(os.times()[:4])
    start = time.perf_counter()
    converted = TOOLS[tool](model, folder)
    seconds, cpu = time.perf_counter() - start, sum(os.times()[:4]) - begin
    layers = list(converted._flatten_layers()) if hasattr(converted, "_flatten_layers") else converted.layers
    moved: list[Any] = [
        layer for layer in layers if "transpose" in layer.name.lower() or type(layer).__name__ == "Permute"
    ]
    moved = [layer for layer in moved if "conv" not in layer.name.lower()]  # a transposed convolution is none
    answer = {
        "wall": seconds,
        "cpu": cpu,
        "transposes": len(moved) if tool != "porter" else _in_source(folder / "port" / "model.py"),
        "trainable": int(sum(np.prod(weight.shape) for weight in converted.trainable_weights)),
        "error": largest_error(converted, folder),
    }
    print(json.dumps(answer))


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], Path(sys.argv[3]))
