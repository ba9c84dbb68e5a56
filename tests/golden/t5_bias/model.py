"""T5Encoder, ported from PyTorch (zoo:t5_bias@small) by porter."""

from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("t5_bias")
class T5LayerNorm(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.weight = self.add_weight(name="weight", shape=(14,))

    def call(self, x):
        variance = ops.mean(ops.square(x), axis=-1, keepdims=True)
        return self.weight * (x * (1.0 / ops.sqrt(variance + 9.999999974752427e-07)))


@keras.saving.register_keras_serializable("t5_bias")
class T5Attention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.q = layers.Dense(18, use_bias=False)
        self.k = layers.Dense(18, use_bias=False)
        self.v = layers.Dense(18, use_bias=False)
        self.dropout = layers.Dropout(0.1)
        self.o = layers.Dense(14, use_bias=False)

    def call(self, x, position_bias, training=None):
        time = ops.shape(x)[1]
        y = ops.reshape(self.q(x), (-1, time, 3, 6))
        z = ops.reshape(self.k(x), (-1, time, 3, 6))
        u = ops.reshape(self.v(x), (-1, time, 3, 6))
        scores = (
            ops.transpose(ops.matmul(ops.transpose(y, (0, 2, 1, 3)), ops.transpose(z, (0, 2, 3, 1))), (2, 3, 0, 1))
            + position_bias
        )
        weights = self.dropout(ops.softmax(scores, axis=1), training=training)
        return self.o(
            ops.reshape(
                ops.transpose(
                    ops.matmul(ops.transpose(weights, (2, 3, 0, 1)), ops.transpose(u, (0, 2, 1, 3))), (0, 2, 1, 3)
                ),
                (-1, time, 18),
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

    def call(self, x, training=None):
        gated = ops.gelu(self.wi_0(x)) * self.wi_1(x)
        return self.wo(self.dropout(gated, training=training))


@keras.saving.register_keras_serializable("t5_bias")
class T5Block(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.attention_norm = T5LayerNorm()
        self.attention_ = T5Attention()
        self.dropout = layers.Dropout(0.1)
        self.feed_forward_norm = T5LayerNorm()
        self.feed_forward = T5GatedFeedForward()

    def call(self, x, position_bias, training=None):
        x = x + self.dropout(
            self.attention_(self.attention_norm(x), position_bias, training=training), training=training
        )
        return x + self.dropout(self.feed_forward(self.feed_forward_norm(x), training=training), training=training)


@keras.saving.register_keras_serializable("t5_bias")
class T5Encoder(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embed_tokens = layers.Embedding(40, 14)
        self.dropout = layers.Dropout(0.1)
        self.relative_position_bias_embedding = layers.Embedding(8, 3)
        self.blocks = [T5Block() for _ in range(2)]
        self.final_norm = T5LayerNorm()

    def call(self, input_ids, training=None):
        x = self.dropout(self.embed_tokens(input_ids), training=training)
        position_bias = ops.arange(ops.shape(input_ids)[1], dtype="int64")
        position_bias = ops.expand_dims(position_bias, axis=0) - ops.expand_dims(position_bias, axis=1)
        y = ops.abs(position_bias)
        z = ops.log(ops.cast(ops.maximum(y, 1), self.compute_dtype) / 2.0) / 2.3025851249694824 * 2.0
        position_bias = self.relative_position_bias_embedding(
            ops.where(ops.greater(position_bias, 0), 4, 0)
            + ops.where(ops.less(y, 2), y, ops.minimum(ops.cast(z, "int64") + 2, 3))
        )
        position_bias = ops.expand_dims(position_bias, axis=2)
        for block in self.blocks:
            x = block(x, position_bias, training=training)
        return self.dropout(self.final_norm(x), training=training)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = T5Encoder()
    model(keras.Input((None,), dtype="int64", name="input_ids"))
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
