"""TranslationTransformer, ported from PyTorch (zoo:transformer@small) by porter."""

from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("transformer")
class MultiheadAttention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(36)
        self.out_proj = layers.Dense(12)

    def call(self, query):
        source_time = ops.shape(query)[1]
        x = ops.squeeze(ops.expand_dims(ops.reshape(self.dense(query), (-1, source_time, 3, 12)), axis=1), axis=1)
        y = x[:, :, 0]
        z = x[:, :, 1]
        x = x[:, :, 2]
        y = ops.reshape(ops.transpose(y, (1, 0, 2)), (source_time, -1, 6))
        z = ops.reshape(ops.transpose(z, (1, 0, 2)), (source_time, -1, 6))
        x = ops.reshape(ops.transpose(x, (1, 0, 2)), (source_time, -1, 6))
        y = ops.reshape(y, (source_time, -1, 2, 6))
        z = ops.reshape(z, (source_time, -1, 2, 6))
        y = ops.transpose(
            ops.dot_product_attention(
                ops.transpose(y, (1, 0, 2, 3)) * 6**-0.5,
                ops.transpose(z, (1, 0, 2, 3)),
                ops.transpose(ops.reshape(x, (source_time, -1, 2, 6)), (1, 0, 2, 3)),
                scale=1.0,
            ),
            (1, 0, 2, 3),
        )
        return ops.reshape(self.out_proj(ops.reshape(y, (-1, 12))), (-1, ops.shape(query)[0], 12))


@keras.saving.register_keras_serializable("transformer")
class SelfAttnMultiheadAttention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(36)
        self.out_proj = layers.Dense(12)

    def call(self, query):
        batch = ops.shape(query)[1]
        x = ops.squeeze(ops.expand_dims(ops.reshape(self.dense(query), (-1, batch, 3, 12)), axis=0), axis=0)
        y = x[:, :, 0]
        z = x[:, :, 1]
        x = x[:, :, 2]
        source_time = ops.shape(query)[0]
        y = ops.reshape(y, (source_time, -1, 6))
        z = ops.reshape(z, (source_time, -1, 6))
        x = ops.reshape(x, (source_time, -1, 6))
        y = ops.reshape(y, (source_time, -1, 2, 6))
        z = ops.reshape(z, (source_time, -1, 2, 6))
        y = ops.transpose(
            ops.dot_product_attention(
                ops.transpose(y, (1, 0, 2, 3)) * 6**-0.5,
                ops.transpose(z, (1, 0, 2, 3)),
                ops.transpose(ops.reshape(x, (source_time, -1, 2, 6)), (1, 0, 2, 3)),
                scale=1.0,
            ),
            (1, 0, 2, 3),
        )
        return ops.reshape(self.out_proj(ops.reshape(y, (-1, 12))), (-1, batch, 12))


@keras.saving.register_keras_serializable("transformer")
class MultiheadAttentionVariant(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(36)
        self.out_proj = layers.Dense(12)

    def call(self, query):
        target_time = ops.shape(query)[1]
        x = ops.squeeze(ops.expand_dims(ops.reshape(self.dense(query), (-1, target_time, 3, 12)), axis=1), axis=1)
        y = x[:, :, 0]
        z = x[:, :, 1]
        x = x[:, :, 2]
        y = ops.reshape(ops.transpose(y, (1, 0, 2)), (target_time, -1, 6))
        z = ops.reshape(ops.transpose(z, (1, 0, 2)), (target_time, -1, 6))
        x = ops.reshape(ops.transpose(x, (1, 0, 2)), (target_time, -1, 6))
        y = ops.reshape(y, (target_time, -1, 2, 6))
        z = ops.reshape(z, (target_time, -1, 2, 6))
        y = ops.transpose(
            ops.dot_product_attention(
                ops.transpose(y, (1, 0, 2, 3)) * 6**-0.5,
                ops.transpose(z, (1, 0, 2, 3)),
                ops.transpose(ops.reshape(x, (target_time, -1, 2, 6)), (1, 0, 2, 3)),
                scale=1.0,
                is_causal=True,
            ),
            (1, 0, 2, 3),
        )
        return ops.reshape(self.out_proj(ops.reshape(y, (-1, 12))), (-1, ops.shape(query)[0], 12))


@keras.saving.register_keras_serializable("transformer")
class MultiheadAttnMultiheadAttention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.in_proj_weight = self.add_weight(name="in_proj_weight", shape=(36, 12))
        self.in_proj_bias = self.add_weight(name="in_proj_bias", shape=(36,))
        self.out_proj = layers.Dense(12)

    def call(self, query, key):
        attn_output, attn_output_weights = ops.split(self.in_proj_weight, [12])
        x, y = ops.split(self.in_proj_bias, [12])
        attn_output = ops.matmul(query, ops.transpose(attn_output, (1, 0))) + x
        batch = ops.shape(query)[1]
        attn_output_weights = ops.squeeze(
            ops.expand_dims(
                ops.reshape(ops.matmul(key, ops.transpose(attn_output_weights, (1, 0))) + y, (-1, batch, 2, 12)), axis=0
            ),
            axis=0,
        )
        x = attn_output_weights[:, :, 0]
        attn_output_weights = attn_output_weights[:, :, 1]
        target_time = ops.shape(query)[0]
        attn_output = ops.reshape(attn_output, (target_time, -1, 6))
        source_time = ops.shape(key)[0]
        x = ops.reshape(x, (source_time, -1, 6))
        attn_output_weights = ops.reshape(attn_output_weights, (source_time, -1, 6))
        attn_output = ops.reshape(attn_output, (target_time, -1, 2, 6))
        x = ops.reshape(x, (source_time, -1, 2, 6))
        attn_output = ops.transpose(
            ops.dot_product_attention(
                ops.transpose(attn_output, (1, 0, 2, 3)) * 6**-0.5,
                ops.transpose(x, (1, 0, 2, 3)),
                ops.transpose(ops.reshape(attn_output_weights, (source_time, -1, 2, 6)), (1, 0, 2, 3)),
                scale=1.0,
            ),
            (1, 0, 2, 3),
        )
        return ops.reshape(self.out_proj(ops.reshape(attn_output, (-1, 12))), (-1, batch, 12))


@keras.saving.register_keras_serializable("transformer")
class PositionalEncoding(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoding = self.add_weight(name="encoding", shape=(1, 512, 12), initializer="zeros", trainable=False)
        self.dropout = layers.Dropout(0.1)

    def call(self, x, training=None):
        return self.dropout(x + self.encoding[:, slice(None, ops.shape(x)[1])], training=training)


@keras.saving.register_keras_serializable("transformer")
class TransformerEncoderLayer(layers.Layer):
    def __init__(self, extra=False, self_=False, **kwargs):
        super().__init__(**kwargs)
        self.extra = extra
        self.self_ = self_
        self.self_attn = SelfAttnMultiheadAttention() if self_ else MultiheadAttention()
        self.dropout1 = layers.Dropout(0.1)
        self.norm1 = layers.LayerNormalization(epsilon=1e-05)
        self.linear1 = layers.Dense(20)
        self.dropout = layers.Dropout(0.1)
        self.linear2 = layers.Dense(12)
        self.dropout2 = layers.Dropout(0.1)
        self.norm2 = layers.LayerNormalization(epsilon=1e-05)

    def call(self, src, training=None):
        x = self.dropout1(self.self_attn(src), training=training)
        src = ops.transpose(src, (1, 0, 2)) if self.extra else src
        src = src + x
        x = self.norm1(src)
        x = x + self.dropout2(
            self.linear2(self.dropout(ops.relu(self.linear1(x)), training=training)), training=training
        )
        return self.norm2(x)

    def get_config(self):
        return {**super().get_config(), "extra": self.extra, "self_": self.self_}


@keras.saving.register_keras_serializable("transformer")
class TransformerDecoderLayer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.self_attn = MultiheadAttentionVariant()
        self.dropout1 = layers.Dropout(0.1)
        self.norm1 = layers.LayerNormalization(epsilon=1e-05)
        self.multihead_attn = MultiheadAttnMultiheadAttention()
        self.dropout2 = layers.Dropout(0.1)
        self.norm2 = layers.LayerNormalization(epsilon=1e-05)
        self.linear1 = layers.Dense(20)
        self.dropout = layers.Dropout(0.1)
        self.linear2 = layers.Dense(12)
        self.dropout3 = layers.Dropout(0.1)
        self.norm3 = layers.LayerNormalization(epsilon=1e-05)

    def call(self, tgt, memory, training=None):
        tgt = ops.transpose(tgt, (1, 0, 2)) + self.dropout1(self.self_attn(tgt), training=training)
        x = self.norm1(tgt)
        memory = self.dropout2(self.multihead_attn(x, memory), training=training)
        x = x + memory
        x = self.norm2(x)
        x = x + self.dropout3(
            self.linear2(self.dropout(ops.relu(self.linear1(x)), training=training)), training=training
        )
        return self.norm3(x)


@keras.saving.register_keras_serializable("transformer")
class TransformerEncoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.layers_ = [TransformerEncoderLayer(extra=True), TransformerEncoderLayer(self_=True)]
        self.norm = layers.LayerNormalization(epsilon=1e-05)

    def call(self, src, training=None):
        for layer in self.layers_:
            src = layer(src, training=training)
        return self.norm(src)


@keras.saving.register_keras_serializable("transformer")
class TransformerDecoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.layers_0 = TransformerDecoderLayer()
        self.norm = layers.LayerNormalization(epsilon=1e-05)

    def call(self, tgt, memory, training=None):
        output = self.layers_0(tgt, memory, training=training)
        return self.norm(output)


@keras.saving.register_keras_serializable("transformer")
class Transformer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoder = TransformerEncoder()
        self.decoder = TransformerDecoder()

    def call(self, src, tgt, training=None):
        memory = self.encoder(src, training=training)
        return self.decoder(tgt, memory, training=training)


@keras.saving.register_keras_serializable("transformer")
class TranslationTransformer(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.source_embedding = layers.Embedding(30, 12)
        self.positional_encoding = PositionalEncoding()
        self.target_embedding = layers.Embedding(36, 12)
        self.transformer = Transformer()
        self.generator = layers.Dense(36)

    def call(self, source, target=None, training=None):
        if isinstance(source, (list, tuple)):  # fit() and predict() hand all inputs over as one
            source, target = source
        source_embedded = self.positional_encoding(self.source_embedding(source) * 3.464101552963257, training=training)
        target_embedded = self.positional_encoding(self.target_embedding(target) * 3.464101552963257, training=training)
        decoded = self.transformer(source_embedded, target_embedded, training=training)
        return ops.transpose(self.generator(decoded), (1, 0, 2))


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = TranslationTransformer()
    model(keras.Input((None,), dtype="int64", name="source"), keras.Input((None,), dtype="int64", name="target"))
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
