"""TranslationTransformer, ported from PyTorch (zoo:transformer@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("transformer")
class PositionalEncoding(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoding = self.add_weight(name="encoding", shape=(1, 512, 12), initializer="zeros", trainable=False)
        self.dropout = layers.Dropout(0.1)

    def call(self, x):
        return self.dropout(x + self.encoding[:, : ops.shape(x)[1]])


@keras.saving.register_keras_serializable("transformer")
class TransformerEncoderLayer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.self_attn = layers.MultiHeadAttention(2, 6, dropout=0.1)
        self.dropout1 = layers.Dropout(0.1)
        self.norm1 = layers.LayerNormalization(epsilon=1e-05)
        self.linear1 = layers.Dense(20)
        self.dropout = layers.Dropout(0.1)
        self.linear2 = layers.Dense(12)
        self.dropout2 = layers.Dropout(0.1)
        self.norm2 = layers.LayerNormalization(epsilon=1e-05)

    def call(self, src):
        x = self.dropout1(self.self_attn(src, src))
        src = src + x
        x = self.norm1(src)
        x = x + self.dropout2(self.linear2(self.dropout(ops.relu(self.linear1(x)))))
        return self.norm2(x)


@keras.saving.register_keras_serializable("transformer")
class TransformerDecoderLayer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.self_attn = layers.MultiHeadAttention(2, 6, dropout=0.1)
        self.dropout1 = layers.Dropout(0.1)
        self.norm1 = layers.LayerNormalization(epsilon=1e-05)
        self.multihead_attn = layers.MultiHeadAttention(2, 6, dropout=0.1)
        self.dropout2 = layers.Dropout(0.1)
        self.norm2 = layers.LayerNormalization(epsilon=1e-05)
        self.linear1 = layers.Dense(20)
        self.dropout = layers.Dropout(0.1)
        self.linear2 = layers.Dense(12)
        self.dropout3 = layers.Dropout(0.1)
        self.norm3 = layers.LayerNormalization(epsilon=1e-05)

    def call(self, tgt, memory):
        tgt = tgt + self.dropout1(self.self_attn(tgt, tgt, use_causal_mask=True))
        x = self.norm1(tgt)
        y = self.dropout2(self.multihead_attn(x, memory))
        x = x + y
        x = self.norm2(x)
        x = x + self.dropout3(self.linear2(self.dropout(ops.relu(self.linear1(x)))))
        return self.norm3(x)


@keras.saving.register_keras_serializable("transformer")
class TransformerEncoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.layers_ = [TransformerEncoderLayer() for _ in range(2)]
        self.norm = layers.LayerNormalization(epsilon=1e-05)

    def call(self, src):
        for layer in self.layers_:
            src = layer(src)
        return self.norm(src)


@keras.saving.register_keras_serializable("transformer")
class TransformerDecoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.layers_ = [TransformerDecoderLayer()]
        self.norm = layers.LayerNormalization(epsilon=1e-05)

    def call(self, tgt, memory):
        output = self.layers_[0](tgt, memory)
        return self.norm(output)


@keras.saving.register_keras_serializable("transformer")
class Transformer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoder = TransformerEncoder()
        self.decoder = TransformerDecoder()

    def call(self, src, tgt):
        memory = self.encoder(src)
        return self.decoder(tgt, memory)


@keras.saving.register_keras_serializable("transformer")
class TranslationTransformer(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.source_embedding = layers.Embedding(30, 12)
        self.positional_encoding = PositionalEncoding()
        self.target_embedding = layers.Embedding(36, 12)
        self.transformer = Transformer()
        self.generator = layers.Dense(36)

    def call(self, source, target=None, training=None):  # Keras hands it on to every layer
        if isinstance(source, dict):  # fit() and predict() hand all inputs over as one
            return self.call(**source)
        if isinstance(source, (list, tuple)):
            return self.call(*source)
        source_embedded = self.positional_encoding(self.source_embedding(source) * 3.4641016151377544)
        target_embedded = self.positional_encoding(self.target_embedding(target) * 3.4641016151377544)
        decoded = self.transformer(source_embedded, target_embedded)
        return self.generator(decoded)

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = TranslationTransformer()
    model(symbolic_inputs())
    if not weights:
        initialize(model)
        redraw(find(model, "generator.kernel"), keras.initializers.RandomUniform(-0.28867513, 0.28867513))
    load_weights(model, Path(__file__).with_name("weights.safetensors"), trained=weights)
    return model


def symbolic_inputs():
    """What the model takes; sizes that are None may vary."""
    return [keras.Input((None,), dtype="int64", name="source"), keras.Input((None,), dtype="int64", name="target")]


def initialize(layer):
    """Draw weights as the source does."""
    if isinstance(layer, layers.Embedding):
        layer.embeddings.assign(keras.random.normal(layer.embeddings.shape))
    elif isinstance(layer, layers.Dense):
        bound = math.prod(layer.kernel.shape[:-1]) ** -0.5
        redraw(layer.kernel, keras.initializers.GlorotUniform())
        redraw(layer.bias, keras.initializers.RandomUniform(-bound, bound))
    elif isinstance(layer, layers.MultiHeadAttention):
        redraw(layer.query_dense.kernel, keras.initializers.LecunUniform())
        redraw(layer.key_dense.kernel, keras.initializers.LecunUniform())
        redraw(layer.value_dense.kernel, keras.initializers.LecunUniform())
        redraw(layer.output_dense.kernel, keras.initializers.LecunUniform())
    within = getattr(layer, "layers", None) or [part for name, part in vars(layer).items() if name[0] != "_"]
    for part in keras.tree.flatten(within):
        if isinstance(part, layers.Layer):
            initialize(part)


def redraw(variable, initializer):
    variable.assign(initializer(variable.shape, variable.dtype))


def load_weights(model, path, trained=True):
    """Assign arrays to the variables whose attribute paths are their names: all, or only what is never trained."""
    for name, array in load_file(path).items():
        variable = find(model, name)
        if trained or not (variable.trainable or name.endswith(("moving_mean", "moving_variance"))):
            variable.assign(array)


def find(model, path):
    """The layer or variable at an attribute path whose numbers are places in a Sequential or list."""
    for step in path.split("."):
        model = getattr(model, "layers", model)[int(step)] if step.isdigit() else getattr(model, step)
    return model
