"""T5Encoder, ported from PyTorch (zoo:t5_bias@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("t5_bias")
class T5LayerNorm(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.weight = self.add_weight(name="weight", shape=(14,), initializer="ones")

    def call(self, x):
        variance = ops.mean(ops.square(x), axis=-1, keepdims=True)
        return self.weight * (x * ops.rsqrt(variance + 1e-06))


@keras.saving.register_keras_serializable("t5_bias")
class T5Attention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.q = layers.Dense(18, use_bias=False)
        self.k = layers.Dense(18, use_bias=False)
        self.v = layers.Dense(18, use_bias=False)
        self.dropout = layers.Dropout(0.1)
        self.o = layers.Dense(14, use_bias=False)

    def call(self, x, position_bias):
        time = ops.shape(x)[1]
        query = ops.reshape(self.q(x), (-1, time, 3, 6))
        key = ops.reshape(self.k(x), (-1, time, 3, 6))
        value = ops.reshape(self.v(x), (-1, time, 3, 6))
        scores = ops.matmul(ops.transpose(query, (0, 2, 1, 3)), ops.transpose(key, (0, 2, 3, 1))) + ops.transpose(
            position_bias, (2, 3, 0, 1)
        )
        weights = self.dropout(ops.softmax(scores))
        return self.o(
            ops.reshape(
                ops.transpose(ops.matmul(weights, ops.transpose(value, (0, 2, 1, 3))), (0, 2, 1, 3)), (-1, time, 18)
            )
        )


@keras.saving.register_keras_serializable("t5_bias")
class T5GatedFeedForward(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.wi_0 = layers.Dense(22, use_bias=False)
        self.wi_1 = layers.Dense(22, use_bias=False)
        self.dropout = layers.Dropout(0.1)
        self.wo = layers.Dense(14, use_bias=False)

    def call(self, x):
        gated = ops.gelu(self.wi_0(x)) * self.wi_1(x)
        return self.wo(self.dropout(gated))


@keras.saving.register_keras_serializable("t5_bias")
class T5Block(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.attention_norm = T5LayerNorm()
        self.attention = T5Attention()
        self.dropout = layers.Dropout(0.1)
        self.feed_forward_norm = T5LayerNorm()
        self.feed_forward = T5GatedFeedForward()

    def call(self, x, position_bias):
        x = x + self.dropout(self.attention(self.attention_norm(x), position_bias))
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x)))


@keras.saving.register_keras_serializable("t5_bias")
class T5Encoder(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embed_tokens = layers.Embedding(40, 14)
        self.dropout = layers.Dropout(0.1)
        self.relative_position_bias_embedding = layers.Embedding(8, 3)
        self.blocks = [T5Block() for _ in range(2)]
        self.final_norm = T5LayerNorm()

    def call(self, input_ids, training=None):  # Keras hands it on to every layer
        x = self.dropout(self.embed_tokens(input_ids))
        position_bias = ops.arange(ops.shape(input_ids)[1], dtype="int64")
        position_bias = ops.expand_dims(position_bias, axis=0) - ops.expand_dims(position_bias, axis=1)
        y = ops.abs(position_bias)
        z = ops.log(ops.cast(ops.maximum(y, 1), self.compute_dtype) / 2.0) / 2.302585092994046 * 2.0
        z = ops.minimum(ops.cast(z, "int64") + 2, 3)
        position_bias = ops.expand_dims(
            self.relative_position_bias_embedding(
                ops.cast(ops.where(ops.greater(position_bias, 0), 4, 0), "int64") + ops.where(ops.less(y, 2), y, z)
            ),
            axis=2,
        )
        for block in self.blocks:
            x = block(x, position_bias)
        return self.dropout(self.final_norm(x))

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = T5Encoder()
    model(*symbolic_inputs())
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
        for path in ("blocks.0.attention.q.kernel", "blocks.1.attention.q.kernel"):
            redraw(find(model, path), keras.initializers.RandomUniform(-0.10910895, 0.10910895))
    return model


def symbolic_inputs():
    """What the model takes; sizes that are None may vary."""
    return [keras.Input((None,), dtype="int64", name="input_ids")]


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
