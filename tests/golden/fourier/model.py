"""FNO1d, ported from PyTorch (zoo:fourier@small) by porter."""

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
        z = self.weight[:, :, :, 0]
        u = self.weight[:, :, :, 1]
        v = ops.einsum("bim,iom->bom", y, z) - ops.einsum("bim,iom->bom", spectrum, u)
        y = ops.einsum("bim,iom->bom", y, u) + ops.einsum("bim,iom->bom", spectrum, z)
        low = ops.stack([v, y], axis=-1)
        padded = ops.pad(low, [(0, 0), (0, 0), (0, Size(expression="points // 2 - 3")), (0, 0)])
        return ops.irfft((padded[..., 0], padded[..., 1]), fft_length=ops.shape(x)[1])


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
        self.layers_ = keras.Sequential([*(FourierLayer() for _ in range(2))])
        self.project = layers.Conv1D(3, 1)

    def call(self, x):
        return self.project(self.layers_(self.lift(x)))


def build(weights=True):
    """The model with the weights that lie beside this file, or with fresh ones."""
    model = FNO1d()
    model(keras.Input((None, 2), name="x"))
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
