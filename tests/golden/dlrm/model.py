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
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.rows = self.add_weight(name="rows", shape=(6,), dtype="int64", initializer="zeros", trainable=False)
        self.columns = self.add_weight(name="columns", shape=(6,), dtype="int64", initializer="zeros", trainable=False)

    def call(self, vectors):
        products = ops.matmul(vectors, ops.transpose(vectors, (0, 2, 1)))
        return gather_nd(ops.transpose(products, (1, 2, 0)), ops.stack([self.rows, self.columns], axis=-1))


@keras.saving.register_keras_serializable("dlrm")
class DLRM(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.bottom_mlp = keras.Sequential([layers.Dense(14), layers.ReLU(), layers.Dense(8), layers.ReLU()])
        self.tables = [layers.Embedding(20, 8), layers.Embedding(31, 8), layers.Embedding(12, 8)]
        self.interaction = DotInteraction()
        self.top_mlp_0 = layers.Dense(18)
        self.output_ = layers.Dense(1)

    def call(self, dense, sparse=None):
        if isinstance(dense, (list, tuple)):  # fit() and predict() hand all inputs over as one
            dense, sparse = dense
        bottom = self.bottom_mlp(dense)
        bags = ops.sum(ops.reshape(self.tables[0](ops.reshape(sparse[:, 0], (-1,))), (-1, 4, 8)), axis=1)
        x = ops.sum(ops.reshape(self.tables[1](ops.reshape(sparse[:, 1], (-1,))), (-1, 4, 8)), axis=1)
        sparse = ops.sum(ops.reshape(self.tables[2](ops.reshape(sparse[:, 2], (-1,))), (-1, 4, 8)), axis=1)
        pairs = self.interaction(ops.stack([bottom, bags, x, sparse], axis=1))
        top = ops.relu(self.top_mlp_0(ops.transpose(ops.concatenate([ops.transpose(bottom, (1, 0)), pairs]), (1, 0))))
        return ops.sigmoid(self.output_(top))


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = DLRM()
    model(keras.Input((5,), name="dense"), keras.Input((3, 4), dtype="int64", name="sparse"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    return model


def load_weights(model, path):
    """Assign every array of a safetensors file to the variable whose attribute path is its name."""
    for name, array in load_file(path).items():
        *owners, variable = name.split(".")
        layer = model
        for owner in owners:
            layer = getattr(layer, "layers", layer)[int(owner)] if owner.isdigit() else getattr(layer, owner)
        getattr(layer, variable).assign(array)
