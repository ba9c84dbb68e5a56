"""Mamba, ported from PyTorch (zoo:mamba@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("mamba")
class RMSNorm(layers.Layer):
    def __init__(self, shape, **kwargs):
        super().__init__(**kwargs)
        self.weight = self.add_weight(name="weight", shape=(shape,), initializer="ones")

    def call(self, x):
        x = x * ops.rsqrt(ops.mean(ops.square(x), axis=-1, keepdims=True) + 1e-05)
        return x * self.weight


@keras.saving.register_keras_serializable("mamba")
class MambaMixer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.in_proj = layers.Dense(57, use_bias=False)
        self.conv1d_pad = layers.ZeroPadding1D(2)
        self.conv1d = layers.DepthwiseConv1D(3)
        self.dt_bias = self.add_weight(name="dt_bias", shape=(5,), initializer="zeros")
        self.A_log = self.add_weight(name="A_log", shape=(5,), initializer="zeros")
        self.D = self.add_weight(name="D", shape=(5, 1))
        self.norm = RMSNorm(20)
        self.out_proj = layers.Dense(10, use_bias=False)

    def call(self, u):
        gate, conv_input, dt = ops.split(self.in_proj(u), [20, 52], axis=-1)
        time = ops.shape(u)[1]
        convolved = self.conv1d(self.conv1d_pad(conv_input))[:, :time]
        x, b, c = ops.split(ops.silu(convolved), [20, 26], axis=-1)
        x = ops.reshape(x, (-1, time, 5, 4))
        dt = dt + self.dt_bias
        dt = ops.where(ops.greater(dt, 20.0), dt, ops.softplus(dt))
        y = x * ops.expand_dims(dt, axis=-1)
        dt = ops.cumsum(-ops.exp(self.A_log) * dt, axis=1)
        dt = ops.expand_dims(dt, axis=2) - ops.expand_dims(dt, axis=1)
        z = ops.logical_not(ops.expand_dims(ops.tril(ops.ones((time, time), dtype="bool")), axis=(0, 3)))
        y = ops.einsum(
            "btsh,bshp->bthp",
            ops.expand_dims(ops.einsum("btn,bsn->bts", c, b), axis=-1) * ops.exp(ops.where(z, float("-inf"), dt)),
            y,
        )
        y = ops.reshape(y + self.D * x, (-1, time, 20))
        return self.out_proj(self.norm(y * ops.silu(gate)))


@keras.saving.register_keras_serializable("mamba")
class ResidualBlock(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm = RMSNorm(10)
        self.mixer = MambaMixer()

    def call(self, x):
        return x + self.mixer(self.norm(x))


@keras.saving.register_keras_serializable("mamba")
class Mamba(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embedding = layers.Embedding(40, 10)
        self.layers_ = [ResidualBlock() for _ in range(2)]
        self.norm_f = RMSNorm(10)

    def call(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers_:
            x = layer(x)
        return ops.matmul(self.norm_f(x), ops.transpose(self.embedding.embeddings))

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = Mamba()
    model(*symbolic_inputs())
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def symbolic_inputs():
    """What the model takes; sizes that are None may vary."""
    return [keras.Input((None,), dtype="int64", name="tokens")]


def initialize(layer):
    """Draw weights as the source does."""
    if isinstance(layer, layers.Embedding):
        layer.embeddings.assign(keras.random.normal(layer.embeddings.shape))
    elif isinstance(layer, layers.DepthwiseConv1D):
        draw(layer, math.prod(layer.kernel.shape[:-2]) ** -0.5)
    elif isinstance(layer, layers.Dense):
        draw(layer, math.prod(layer.kernel.shape[:-1]) ** -0.5)
    elif isinstance(layer, MambaMixer):
        redraw(layer.D, keras.initializers.Ones())
    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]
    for part in keras.tree.flatten(within):
        if isinstance(part, layers.Layer):
            initialize(part)


def draw(layer, bound):
    for variable in layer.weights:
        variable.assign(keras.random.uniform(variable.shape, -bound, bound))


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
