"""VAE, ported from PyTorch (zoo:vae@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("vae")
class Encoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.conv1_pad = layers.ZeroPadding2D(1)
        self.conv1 = layers.Conv2D(4, 3, strides=2)
        self.conv2_pad = layers.ZeroPadding2D(1)
        self.conv2 = layers.Conv2D(8, 3, strides=2)
        self.conv3_pad = layers.ZeroPadding2D(1)
        self.conv3 = layers.Conv2D(16, 3, strides=2)
        self.fc_mu = layers.Dense(6)
        self.fc_logvar = layers.Dense(6)

    def call(self, x):
        x = ops.relu(self.conv1(self.conv1_pad(x)))
        x = ops.relu(self.conv2(self.conv2_pad(x)))
        x = ops.relu(self.conv3(self.conv3_pad(x)))
        x = ops.reshape(x, (-1, 256))
        y = self.fc_mu(x)
        x = self.fc_logvar(x)
        return y, x


@keras.saving.register_keras_serializable("vae")
class Decoder(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.fc = layers.Dense(256)
        self.deconv1 = layers.Conv2DTranspose(8, 3, strides=2)
        self.deconv1_crop = layers.Cropping2D(((1, 0), (1, 0)))
        self.deconv2 = layers.Conv2DTranspose(4, 3, strides=2)
        self.deconv2_crop = layers.Cropping2D(((1, 0), (1, 0)))
        self.deconv3 = layers.Conv2DTranspose(3, 3, strides=2)
        self.deconv3_crop = layers.Cropping2D(((1, 0), (1, 0)))

    def call(self, z):
        x = ops.reshape(ops.relu(self.fc(z)), (-1, 4, 4, 16))
        x = ops.relu(self.deconv1_crop(self.deconv1(x)))
        x = ops.relu(self.deconv2_crop(self.deconv2(x)))
        return ops.sigmoid(self.deconv3_crop(self.deconv3(x)))


@keras.saving.register_keras_serializable("vae")
class VAE(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.encoder = Encoder()
        self.decoder = Decoder()

    def call(self, x):
        mu, logvar = self.encoder(x)
        x = self.decoder(mu)
        return x, mu, logvar


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = VAE()
    model(keras.Input((32, 32, 3), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as PyTorch does: kernels and biases within ±1/√fan_in."""
    if isinstance(layer, (layers.Dense, layers.Conv2D, layers.Conv2DTranspose)):
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
