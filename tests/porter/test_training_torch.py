"""A PyTorch port trains on as its Keras source does: the same steps, in float64, with BatchNorm in training mode."""

from __future__ import annotations

from collections.abc import Iterator

import keras
import numpy as np
import pytest
import tensorflow as tf
import torch
from keras import layers

import porter
from porter.converters import weights as wx
from porter.runners.keras_forms import float64_copy, keras_precision
from porter.zoo import catalog
from tests.porter.test_training import ExpectedVariances, assert_follows

RATE, MOMENTUM = 2.0**-7, 0.5


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    keras.utils.set_random_seed(5)
    yield
    keras.backend.clear_session()


def steps_of_keras(model: keras.Model, inputs: list[np.ndarray], steps: int) -> dict[str, np.ndarray]:
    """The variables after some steps of SGD, which draw the outputs to one, in float64."""
    with keras_precision("float64"):
        doubled = float64_copy(model)
        optimizer = keras.optimizers.SGD(RATE, momentum=MOMENTUM)
        given = [tf.constant(x.astype(np.float64) if x.dtype.kind == "f" else x) for x in inputs]
        for _ in range(steps):
            with tf.GradientTape() as tape:
                outputs = keras.tree.flatten(doubled(given if len(given) > 1 else given[0], training=True))
                loss = sum(keras.ops.mean((y - 1) * (y - 1)) for y in outputs)
            variables = doubled.trainable_variables
            optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables, strict=True))
        pairs = zip(model.weights, doubled.weights, strict=True)
        return {variable.path: np.asarray(copied) for variable, copied in pairs}


def steps_of_torch(port: porter.Port, inputs: list[np.ndarray], steps: int) -> dict[str, np.ndarray]:
    """The same of the port, under the source's names; running variances as Keras would have them."""
    model = port.load().double().train()
    variances = ExpectedVariances(model)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(trained, RATE, momentum=MOMENTUM)
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    given = [torch.from_numpy(np.ascontiguousarray(x)) for x in port.to_target(tuple(inputs))]
    try:
        for _ in range(steps):
            optimizer.zero_grad()
            outputs = model(*(x.double() if x.is_floating_point() else x for x in given))
            outputs = outputs if isinstance(outputs, tuple) else (outputs,)
            sum(((y - 1) * (y - 1)).mean() for y in outputs).backward()
            optimizer.step()
    finally:
        torch.set_default_dtype(before)
    counts = {int(t) for name, t in model.state_dict().items() if name.endswith("num_batches_tracked")}
    assert counts <= {steps, 2 * steps}  # an encoder of two inputs is called twice
    made = {name: tensor.detach().numpy() for name, tensor in model.state_dict().items() if name in port.weight_map}
    made |= {name: tensor.numpy() for name, tensor in variances.values.items()}
    restored: dict[str, np.ndarray] = {}
    for name, array in made.items():
        if port.weight_map[name]["kind"] != "constant":
            wx.from_json(port.weight_map[name]["expression"]).restore(array, restored)
    return restored


def check(model: keras.Model, inputs: list[np.ndarray], port: porter.Port, steps: int) -> None:
    start = {v.path: np.asarray(v, np.float64) for v in model.weights if v.path not in port.manifest["unused"]}
    wanted = {path: array for path, array in steps_of_keras(model, inputs, steps).items() if path in start}
    assert_follows(wanted, steps_of_torch(port, inputs, steps), start)


def net(**frozen: bool) -> keras.Model:
    """Every kind of layer that training treats in its own way; Dropout draws nothing at rate 0."""
    x = keras.Input((8, 8, 3), name="x")
    y = layers.Conv2D(6, 3, padding="same", use_bias=False, name="conv")(x)
    y = layers.BatchNormalization(momentum=0.75, name="norm")(y)
    y = layers.DepthwiseConv2D(3, strides=2, padding="same", activation="relu", name="depthwise")(y)
    y = layers.BatchNormalization(scale=False, name="unscaled")(y)
    y = layers.SpatialDropout2D(0.0, name="dropout")(layers.ReLU(name="relu")(y))
    y = layers.BatchNormalization(center=False, name="uncentred")(y)
    y = layers.Dense(5, activation="gelu", name="dense")(layers.Flatten(name="flat")(y))
    y = layers.LayerNormalization(name="layer")(y)
    y = layers.BatchNormalization(name="vectors")(layers.Activation("tanh", name="tanh")(y))
    model = keras.Model(x, layers.Dense(3, name="head")(y), name="net")
    for name, trainable in frozen.items():
        model.get_layer(name).trainable = trainable
    return model


@pytest.mark.parametrize("steps", [1, 3])
@pytest.mark.parametrize("frozen", [{}, {"conv": False}, {"dense": False, "layer": False}])
def test_the_same_steps(steps: int, frozen: dict[str, bool]) -> None:
    model = net(**frozen)
    images = np.random.default_rng(3).normal(size=(6, 8, 8, 3)).astype(np.float32)
    port = porter.port(model, (images,), to="torch")
    fixed = {name for name, p in port.load().named_parameters() if not p.requires_grad}
    assert {name.partition(".")[0] for name in fixed} == {"unscaled", "uncentred", *frozen}
    check(model, [images], port, steps)


@pytest.mark.parametrize("name", ["mobilenet_v2_functional", "lstm_sequential", "siamese"])
def test_models_of_the_zoo(name: str) -> None:
    entry = catalog.find(f"keras/{name}")
    model, inputs = entry.make(small=True), entry.inputs(small=True, batch=4)
    for layer in model._flatten_layers():
        if isinstance(layer, layers.Dropout):
            layer.rate = 0.0
    port = porter.port(model, inputs, to="torch", dynamic=entry.dynamic, name=name)
    check(model, list(inputs.values()), port, 2)
