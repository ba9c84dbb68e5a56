"""GCN, ported from PyTorch (zoo:gcn@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def flat_positions(indices, sizes):
    """Rows of positions as positions in the flattened axes that have `sizes`."""
    flat = 0
    for axis, size in enumerate(sizes):
        position = indices[..., axis]
        size = ops.cast(size, position.dtype)
        flat = flat * size + ops.where(ops.less(position, 0), position + size, position)
    return flat


def scatter_nd(x, indices, updates, reduction=None):
    """`x` with `updates` written, or combined with what is there, at `indices` (see `gather_nd`)."""
    shape, depth = ops.shape(x), indices.shape[-1]
    rest = shape[depth:]
    positions = ops.reshape(flat_positions(indices, shape[:depth]), (-1, 1))
    flat, updates = ops.reshape(x, (-1, *rest)), ops.reshape(updates, (-1, *rest))
    return ops.reshape(ops.scatter_update(flat, positions, updates, reduction), shape)


def scatter_elements(x, indices, updates, axis=0, reduction=None):
    """`x` with each of `updates` written, or combined, at its own place, but where `indices` says along `axis`."""
    shape = ops.shape(indices)
    grid = [
        ops.broadcast_to(
            ops.reshape(ops.arange(size, dtype=indices.dtype), [-1 if i == at else 1 for i in range(len(shape))]), shape
        )
        for at, size in enumerate(shape)
    ]
    grid[axis] = indices
    return scatter_nd(x, ops.stack(grid, axis=-1), updates, reduction)


@keras.saving.register_keras_serializable("gcn")
class GraphConv(layers.Layer):
    def __init__(self, units, **kwargs):
        super().__init__(**kwargs)
        self.units = units
        self.linear = layers.Dense(units, use_bias=False)
        self.bias = self.add_weight(name="bias", shape=(units,), initializer="zeros")

    def call(self, x, source, target):
        y = self.linear(x)
        nodes = ops.shape(x)[0]
        degree = ops.ones((nodes,))
        edges = ops.shape(source)[0]
        degree = scatter_nd(degree, ops.expand_dims(target, axis=1), ops.ones((edges,)), reduction="add")
        inverse_root = ops.rsqrt(degree)
        norm = ops.take(inverse_root, source, axis=0) * ops.take(inverse_root, target, axis=0)
        messages = ops.take(y, source, axis=0) * ops.expand_dims(norm, axis=-1)
        index = ops.broadcast_to(ops.expand_dims(target, axis=-1), (edges, self.units))
        gathered = scatter_elements(ops.zeros((nodes, self.units)), index, messages, axis=0, reduction="add")
        return gathered + y / ops.expand_dims(degree, axis=-1) + self.bias


@keras.saving.register_keras_serializable("gcn")
class GCN(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv1 = GraphConv(8)
        self.dropout = layers.Dropout(0.5)
        self.conv2 = GraphConv(4)

    def call(self, x, edge_index=None, training=None):  # Keras hands it on to every layer
        if isinstance(x, dict):  # fit() and predict() hand all inputs over as one
            return self.call(**x)
        if isinstance(x, (list, tuple)):
            return self.call(*x)
        source = edge_index[0]
        target = edge_index[1]
        x = ops.relu(self.conv1(x, source, target))
        return self.conv2(self.dropout(x), source, target)

    def build_from_config(self, config):
        self(symbolic_inputs())

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = GCN()
    model(symbolic_inputs())
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def symbolic_inputs():
    """What the model takes; sizes that are None may vary."""
    return [keras.Input((9,), name="x"), keras.Input(batch_shape=(2, None), dtype="int64", name="edge_index")]


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, layers.Dense):
        bound = math.prod(layer.kernel.shape[:-1]) ** -0.5
        for variable in layer.weights:
            variable.assign(keras.random.uniform(variable.shape, -bound, bound))
    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]
    for part in keras.tree.flatten(within):
        if isinstance(part, layers.Layer):
            initialize(part)


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        find(model, name).assign(array)


def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a Sequential or list."""
    for step in path.split("."):
        model = getattr(model, "layers", model)[int(step)] if step.isdigit() else getattr(model, step)
    return model
