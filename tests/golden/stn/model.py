"""STN, ported from PyTorch (zoo:stn@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def affine_grid(theta, size, align_corners=False):
    """The grid of an affine map for an image or volume of `size`; `theta` is (batch, n, n + 1)."""
    ends = []
    for length in size:
        steps = ops.arange(length, dtype=theta.dtype)
        length = ops.cast(length, theta.dtype)
        if align_corners:
            ends.append(ops.where(length > 1, 2 * steps / ops.maximum(length - 1, 1) - 1, ops.zeros_like(steps)))
        else:
            ends.append((2 * steps + 1) / length - 1)
    axes = ops.meshgrid(*ends, indexing="ij")
    base = ops.stack([*reversed(axes), ops.ones_like(axes[0])], axis=-1)
    flat = ops.matmul(ops.reshape(base, (-1, len(size) + 1)), ops.transpose(theta, (0, 2, 1)))
    return ops.reshape(flat, (-1, *size, len(size)))


def folded_positions(position, size, padding, align_corners):
    """Positions outside an axis moved to its end ("border") or mirrored there ("reflection")."""
    last = ops.cast(size - 1, position.dtype)
    if padding == "reflection":
        start = 0.0 if align_corners else -0.5
        span = ops.maximum(last, 1) if align_corners else last + 1
        turn = ops.mod(position - start, 2 * span)
        position = ops.minimum(turn, 2 * span - turn) + start
    return position if padding == "zeros" else ops.clip(position, 0, last)


def grid_positions(grid, sizes, align_corners):
    """The grid's positions as positions on each spatial axis, in the order of the axes."""
    positions = []
    for axis, size in enumerate(sizes):
        unit = grid[..., len(sizes) - 1 - axis]
        size = ops.cast(size, grid.dtype)
        positions.append((unit + 1) / 2 * (size - 1) if align_corners else ((unit + 1) * size - 1) / 2)
    return positions


def values_at(x, positions):
    """The elements of `x` at whole positions (one tensor per spatial axis), 0 outside."""
    sizes = ops.shape(x)[1:-1]
    index = ops.reshape(ops.arange(ops.shape(x)[0], dtype="int32"), (-1,) + (1,) * len(sizes))
    inside = True
    for position, size in zip(positions, sizes, strict=True):
        last = ops.cast(size - 1, position.dtype)
        inside = ops.logical_and(inside, ops.logical_and(position >= 0, position <= last))
        index = index * size + ops.cast(ops.clip(position, 0, last), "int32")
    values = ops.take(ops.reshape(x, (-1, ops.shape(x)[-1])), index, axis=0)
    return ops.where(ops.expand_dims(inside, -1), values, ops.zeros_like(values))


def grid_sample(x, grid, padding="zeros", align_corners=False):
    """Linear samples of `x`."""
    sizes = ops.shape(x)[1:-1]
    positions = grid_positions(grid, sizes, align_corners)
    positions = [folded_positions(p, s, padding, align_corners) for p, s in zip(positions, sizes, strict=True)]
    lows = [ops.floor(position) for position in positions]
    parts = []
    for corner in range(2 ** len(sizes)):
        steps = [corner >> axis & 1 for axis in range(len(sizes))]
        weight = 1
        for position, low, step in zip(positions, lows, steps, strict=True):
            weight = weight * (position - low if step else low + 1 - position)
        values = values_at(x, [low + step for low, step in zip(lows, steps, strict=True)])
        parts.append(values * ops.expand_dims(weight, -1))
    return sum(parts[1:], parts[0])


@keras.saving.register_keras_serializable("stn")
class SpatialTransformer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.localization = keras.Sequential(
            [
                layers.Conv2D(4, 7),
                layers.MaxPooling2D(2),
                layers.ReLU(),
                layers.Conv2D(6, 5),
                layers.MaxPooling2D(2),
                layers.ReLU(),
            ]
        )
        self.fc_loc = keras.Sequential([layers.Dense(32), layers.ReLU(), layers.Dense(6)])

    def call(self, x):
        theta = self.fc_loc(ops.reshape(self.localization(x), (-1, 54)))
        theta = ops.reshape(theta, (-1, 2, 3))
        grid = affine_grid(theta, (28, 28))
        return grid_sample(x, grid)


@keras.saving.register_keras_serializable("stn")
class STN(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.transformer = SpatialTransformer()
        self.conv1 = layers.Conv2D(4, 5)
        self.max_pooling2d = layers.MaxPooling2D(2)
        self.conv2 = layers.Conv2D(8, 5)
        self.conv2_drop = layers.SpatialDropout2D(0.5)
        self.fc1 = layers.Dense(50)
        self.dropout = layers.Dropout(0.5)
        self.fc2 = layers.Dense(10)

    def call(self, x, training=None):  # Keras hands it on to every layer
        x = self.transformer(x)
        x = ops.relu(self.max_pooling2d(self.conv1(x)))
        x = ops.relu(self.max_pooling2d(self.conv2_drop(self.conv2(x))))
        x = ops.reshape(x, (-1, 128))
        x = ops.relu(self.fc1(x))
        x = self.dropout(x)
        return self.fc2(x)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = STN()
    model(keras.Input((28, 28, 1), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
        redraw(find(model, "transformer.fc_loc.2.kernel"), keras.initializers.RandomUniform(-0.01767767, 0.01767767))
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, (layers.Dense, layers.Conv2D)):
        bound = math.prod(layer.kernel.shape[:-1]) ** -0.5
        for variable in layer.weights:
            variable.assign(keras.random.uniform(variable.shape, -bound, bound))
    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]
    for part in keras.tree.flatten(within):
        if isinstance(part, layers.Layer):
            initialize(part)


def redraw(variable, initializer):
    variable.assign(initializer(variable.shape, variable.dtype))


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        find(model, name).assign(array)


def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a Sequential or list."""
    for step in path.split("."):
        model = getattr(model, "layers", model)[int(step)] if step.isdigit() else getattr(model, step)
    return model
