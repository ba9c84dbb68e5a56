"""DLRM, ported from PyTorch (zoo:dlrm@small) by porter."""

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


def gather_nd(x, indices, batch_dims=0):
    """The elements or slices of `x` at `indices`, whose last axis holds one position for each of the first axes of `x`.

    The first `batch_dims` axes of both belong together.
    """
    shape, batch = ops.shape(x), ops.shape(x)[:batch_dims]
    depth = indices.shape[-1]
    sizes, rest = shape[batch_dims : batch_dims + depth], shape[batch_dims + depth :]
    positions = flat_positions(indices, sizes)
    if batch_dims:
        rows = ops.reshape(
            ops.arange(math.prod(batch), dtype=positions.dtype), (*batch, *[1] * (len(positions.shape) - batch_dims))
        )
        positions = positions + rows * ops.cast(math.prod(sizes), positions.dtype)
    return ops.take(ops.reshape(x, (-1, *rest)), positions, axis=0)


@keras.saving.register_keras_serializable("dlrm")
class DotInteraction(layers.Layer):
    def call(self, vectors):
        products = ops.matmul(vectors, ops.transpose(vectors, (0, 2, 1)))
        return ops.transpose(
            gather_nd(
                ops.transpose(products, (1, 2, 0)),
                ops.array([[1, 0], [2, 0], [2, 1], [3, 0], [3, 1], [3, 2]], dtype="int64"),
            ),
            (1, 0),
        )


@keras.saving.register_keras_serializable("dlrm")
class DLRM(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.bottom_mlp = keras.Sequential([layers.Dense(14), layers.ReLU(), layers.Dense(8), layers.ReLU()])
        self.tables = [layers.Embedding(20, 8), layers.Embedding(31, 8), layers.Embedding(12, 8)]
        self.interaction = DotInteraction()
        self.top_mlp = keras.Sequential([layers.Dense(18), layers.ReLU()])
        self.output_ = layers.Dense(1)

    def call(self, dense, sparse=None):
        if isinstance(dense, dict):  # fit() and predict() hand all inputs over as one
            return self.call(**dense)
        if isinstance(dense, (list, tuple)):
            return self.call(*dense)
        bottom = self.bottom_mlp(dense)
        bags = ops.sum(ops.reshape(self.tables[0](ops.reshape(sparse[:, 0], (-1,))), (-1, 4, 8)), axis=1)
        x = ops.sum(ops.reshape(self.tables[1](ops.reshape(sparse[:, 1], (-1,))), (-1, 4, 8)), axis=1)
        sparse = ops.sum(ops.reshape(self.tables[2](ops.reshape(sparse[:, 2], (-1,))), (-1, 4, 8)), axis=1)
        pairs = self.interaction(ops.stack([bottom, bags, x, sparse], axis=1))
        top = self.top_mlp(ops.concatenate([bottom, pairs], axis=1))
        return ops.sigmoid(self.output_(top))

    def build_from_config(self, config):
        self(symbolic_inputs())

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = DLRM()
    model(symbolic_inputs())
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def symbolic_inputs():
    """What the model takes; sizes that are None may vary."""
    return [keras.Input((5,), name="dense"), keras.Input((3, 4), dtype="int64", name="sparse")]


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in, normal embeddings."""
    if isinstance(layer, layers.Embedding):
        layer.embeddings.assign(keras.random.normal(layer.embeddings.shape))
    elif isinstance(layer, layers.Dense):
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
