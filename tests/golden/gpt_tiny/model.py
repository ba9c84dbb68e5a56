"""GPT, ported from PyTorch (zoo:gpt_tiny@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("gpt_tiny")
class CausalSelfAttention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.c_attn = layers.Dense(36)
        self.c_proj = layers.Dense(12)
        self.resid_dropout = layers.Dropout(0.1)

    def call(self, x):
        y, z, u = ops.split(self.c_attn(x), 3, axis=-1)
        time = ops.shape(x)[1]
        query = ops.reshape(y, (-1, time, 3, 4))
        key = ops.reshape(z, (-1, time, 3, 4))
        value = ops.reshape(u, (-1, time, 3, 4))
        attended = ops.dot_product_attention(query, key, value, is_causal=True)
        attended = ops.reshape(attended, (-1, time, 12))
        return self.resid_dropout(self.c_proj(attended))


@keras.saving.register_keras_serializable("gpt_tiny")
class MLP(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.c_fc = layers.Dense(48)
        self.c_proj = layers.Dense(12)
        self.dropout = layers.Dropout(0.1)

    def call(self, x):
        return self.dropout(self.c_proj(ops.gelu(self.c_fc(x))))


@keras.saving.register_keras_serializable("gpt_tiny")
class Block(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.ln_1 = layers.LayerNormalization(epsilon=1e-05)
        self.attn = CausalSelfAttention()
        self.ln_2 = layers.LayerNormalization(epsilon=1e-05)
        self.mlp = MLP()

    def call(self, x):
        x = x + self.attn(self.ln_1(x))
        return x + self.mlp(self.ln_2(x))


@keras.saving.register_keras_serializable("gpt_tiny")
class GPT(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.wte = layers.Embedding(40, 12)
        self.wpe = layers.Embedding(32, 12)
        self.drop = layers.Dropout(0.1)
        self.blocks = [Block() for _ in range(2)]
        self.ln_f = layers.LayerNormalization(epsilon=1e-05)

    def call(self, tokens, training=None):  # Keras hands it on to every layer
        positions = ops.arange(ops.shape(tokens)[1], dtype="int64")
        x = self.drop(self.wte(tokens) + self.wpe(positions))
        for block in self.blocks:
            x = block(x)
        return ops.matmul(self.ln_f(x), ops.transpose(self.wte.embeddings))

    def export(self, filepath, format="tf_saved_model", verbose=None, input_signature=None, **kwargs):
        super().export(filepath, format, verbose, input_signature or symbolic_inputs(), **kwargs)


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = GPT()
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
