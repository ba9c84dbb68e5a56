"""VisionTransformer, ported from PyTorch (zoo:vit_tiny@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("vit_tiny")
class PatchEmbed(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.proj = layers.Conv2D(24, 4, strides=4)

    def call(self, images):
        return ops.reshape(self.proj(images), (-1, 16, 24))


@keras.saving.register_keras_serializable("vit_tiny")
class Attention(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.qkv = layers.Dense(72)
        self.proj = layers.Dense(24)

    def call(self, x):
        qkv = ops.reshape(self.qkv(x), (-1, 17, 3, 3, 8))
        query = qkv[:, :, 0]
        key = qkv[:, :, 1]
        value = qkv[:, :, 2]
        weights = ops.softmax(
            ops.matmul(ops.transpose(query, (0, 2, 1, 3)), ops.transpose(key, (0, 2, 3, 1))) * 0.3535533905932738
        )
        x = ops.reshape(
            ops.transpose(ops.matmul(weights, ops.transpose(value, (0, 2, 1, 3))), (0, 2, 1, 3)), (-1, 17, 24)
        )
        return self.proj(x)


@keras.saving.register_keras_serializable("vit_tiny")
class MLP(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.fc1 = layers.Dense(96)
        self.fc2 = layers.Dense(24)
        self.drop = layers.Dropout(0.1)

    def call(self, x):
        return self.drop(self.fc2(ops.gelu(self.fc1(x), approximate=False)))


@keras.saving.register_keras_serializable("vit_tiny")
class Block(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.norm1 = layers.LayerNormalization(epsilon=1e-06)
        self.attn = Attention()
        self.norm2 = layers.LayerNormalization(epsilon=1e-06)
        self.mlp = MLP()

    def call(self, x):
        x = x + self.attn(self.norm1(x))
        return x + self.mlp(self.norm2(x))


@keras.saving.register_keras_serializable("vit_tiny")
class VisionTransformer(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.patch_embed = PatchEmbed()
        self.cls_token = self.add_weight(name="cls_token", shape=(1, 1, 24))
        self.pos_embed = self.add_weight(name="pos_embed", shape=(1, 17, 24))
        self.blocks = keras.Sequential([Block() for _ in range(2)])
        self.norm = layers.LayerNormalization(epsilon=1e-06)
        self.head = layers.Dense(10)

    def call(self, images, training=None):  # Keras hands it on to every layer
        x = self.patch_embed(images)
        cls_token = ops.broadcast_to(self.cls_token, (ops.shape(images)[0], 1, 24))
        x = ops.concatenate([cls_token, x], axis=1) + self.pos_embed
        x = self.norm(self.blocks(x))
        return self.head(x[:, 0])


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = VisionTransformer()
    model(keras.Input((16, 16, 3), name="images"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, (layers.Dense, layers.Conv2D)):
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
