"""FNO1d, ported from PyTorch (zoo:fourier@small) by porter."""

import math
from pathlib import Path

import keras
from keras import layers, ops
from safetensors.numpy import load_file


@keras.saving.register_keras_serializable("fourier")
class SpectralConv1d(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.weight = self.add_weight(name="weight", shape=(6, 6, 4, 2))

    def call(self, x):
        spectrum = ops.stack(ops.rfft(ops.transpose(x, (0, 2, 1))), axis=-1)
        spectrum = spectrum[:, :, :4]
        y = spectrum[:, :, :, 0]
        spectrum = spectrum[:, :, :, 1]
        weight_real = self.weight[:, :, :, 0]
        weight_imag = self.weight[:, :, :, 1]
        z = ops.einsum("bim,iom->bom", y, weight_real) - ops.einsum("bim,iom->bom", spectrum, weight_imag)
        y = ops.einsum("bim,iom->bom", y, weight_imag) + ops.einsum("bim,iom->bom", spectrum, weight_real)
        low = ops.stack([z, y], axis=-1)
        points = ops.shape(x)[1]
        padded = ops.pad(low, [(0, 0), (0, 0), (0, points // 2 - 3), (0, 0)])
        return ops.irfft((padded[..., 0], padded[..., 1]), fft_length=points)


@keras.saving.register_keras_serializable("fourier")
class FourierLayer(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.spectral = SpectralConv1d()
        self.pointwise = layers.Conv1D(6, 1)

    def call(self, x):
        return ops.gelu(ops.transpose(self.spectral(x), (0, 2, 1)) + self.pointwise(x), approximate=False)


@keras.saving.register_keras_serializable("fourier")
class FNO1d(keras.Model):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.lift = layers.Conv1D(6, 1)
        self.layers_ = keras.Sequential([FourierLayer() for _ in range(2)])
        self.project = layers.Conv1D(3, 1)

    def call(self, x):
        return self.project(self.layers_(self.lift(x)))


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = FNO1d()
    model(keras.Input((None, 2), name="x"))
    if weights:
        load_weights(model, Path(__file__).with_name("weights.safetensors"))
    else:
        initialize(model)
    return model


def initialize(layer):
    """Draw weights as the source does."""
    if isinstance(layer, layers.Conv1D):
        bound = math.prod(layer.kernel.shape[:-1]) ** -0.5
        for variable in layer.weights:
            variable.assign(keras.random.uniform(variable.shape, -bound, bound))
    elif isinstance(layer, SpectralConv1d):
        redraw(layer.weight, keras.initializers.RandomNormal(stddev=0.33333333))
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
