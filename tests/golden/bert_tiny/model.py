"""BertModel, ported from PyTorch (zoo:bert_tiny@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


def without_padding_gradient(vectors, indices, padding_index):
    """Embedded `indices`, with no gradient to the vector of `padding_index`."""
    padding = ops.expand_dims(ops.equal(indices, padding_index), -1)
    return ops.where(padding, ops.stop_gradient(vectors), vectors)


@keras.saving.register_keras_serializable("bert_tiny")
class BertEmbeddings(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.word_embeddings = layers.Embedding(50, 12)
        self.token_type_embeddings = layers.Embedding(2, 12)
        self.position_embeddings = layers.Embedding(32, 12)
        self.norm = layers.LayerNormalization(epsilon=1e-12)
        self.dropout = layers.Dropout(0.1)

    def call(self, input_ids, token_type_ids):
        positions = ops.arange(32, dtype="int64")[None][:, : ops.shape(input_ids)[1]]
        embeddings = without_padding_gradient(
            self.word_embeddings(input_ids), input_ids, 0
        ) + self.token_type_embeddings(token_type_ids)
        embeddings = embeddings + self.position_embeddings(positions)
        return self.dropout(self.norm(embeddings))


@keras.saving.register_keras_serializable("bert_tiny")
class BertSelfAttention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.query = layers.Dense(12)
        self.key = layers.Dense(12)
        self.value = layers.Dense(12)
        self.dropout = layers.Dropout(0.1)

    def call(self, hidden, mask):
        time = ops.shape(hidden)[1]
        query = ops.reshape(self.query(hidden), (-1, time, 3, 4))
        key = ops.reshape(self.key(hidden), (-1, time, 3, 4))
        value = ops.reshape(self.value(hidden), (-1, time, 3, 4))
        scores = ops.matmul(ops.transpose(query, (0, 2, 1, 3)), ops.transpose(key, (0, 2, 3, 1))) / 2.0
        weights = self.dropout(ops.softmax(scores + mask))
        return ops.reshape(
            ops.transpose(ops.matmul(weights, ops.transpose(value, (0, 2, 1, 3))), (0, 2, 1, 3)), (-1, time, 12)
        )


@keras.saving.register_keras_serializable("bert_tiny")
class BertFeedForward(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.expansion = layers.Dense(20)
        self.contraction = layers.Dense(12)
        self.dropout = layers.Dropout(0.1)
        self.norm = layers.LayerNormalization(epsilon=1e-12)

    def call(self, hidden):
        expanded = ops.gelu(self.expansion(hidden), approximate=False)
        return self.norm(hidden + self.dropout(self.contraction(expanded)))


@keras.saving.register_keras_serializable("bert_tiny")
class BertPooler(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.dense = layers.Dense(12)

    def call(self, hidden):
        return ops.tanh(self.dense(hidden[:, 0]))


@keras.saving.register_keras_serializable("bert_tiny")
class BertAttention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.self_attention = BertSelfAttention()
        self.projection = layers.Dense(12)
        self.dropout = layers.Dropout(0.1)
        self.norm = layers.LayerNormalization(epsilon=1e-12)

    def call(self, hidden, mask):
        attended = self.dropout(self.projection(self.self_attention(hidden, mask)))
        return self.norm(hidden + attended)


@keras.saving.register_keras_serializable("bert_tiny")
class BertLayer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.attention = BertAttention()
        self.feed_forward = BertFeedForward()

    def call(self, hidden, mask):
        return self.feed_forward(self.attention(hidden, mask))


@keras.saving.register_keras_serializable("bert_tiny")
class BertModel(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.embeddings = BertEmbeddings()
        self.encoder = [BertLayer() for _ in range(2)]
        self.pooler = BertPooler()

    def call(
        self, input_ids, attention_mask=None, token_type_ids=None, training=None
    ):  # Keras hands it on to every layer
        if isinstance(input_ids, dict):  # fit() and predict() hand all inputs over as one
            return self.call(**input_ids)
        if isinstance(input_ids, (list, tuple)):
            return self.call(*input_ids)
        hidden = self.embeddings(input_ids, token_type_ids)
        mask = (1.0 - ops.cast(ops.expand_dims(attention_mask, axis=(1, 2)), self.compute_dtype)) * -10000.0
        for encoder_item in self.encoder:
            hidden = encoder_item(hidden, mask)
        x = self.pooler(hidden)
        return hidden, x

    def build_from_config(self, config):
        self(symbolic_inputs())

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = BertModel()
    model(symbolic_inputs())
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def symbolic_inputs():
    """What the model takes; sizes that are None may vary."""
    return [
        keras.Input((None,), dtype="int64", name="input_ids"),
        keras.Input((None,), dtype="int64", name="attention_mask"),
        keras.Input((None,), dtype="int64", name="token_type_ids"),
    ]


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
