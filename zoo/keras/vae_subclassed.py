"""Variational autoencoder of three classes of one's own; it samples in training and takes the mean otherwise."""

import keras
import numpy as np
from keras import layers, ops

from porter.zoo.keras.seeding import seed_weights

DYNAMIC = {"images": {0: "batch"}}


@keras.saving.register_keras_serializable("zoo")
class Sampling(layers.Layer):
    def __init__(self, **kwargs):
        super().__init__(**kwargs)
        self.seed_generator = keras.random.SeedGenerator(1337)

    def call(self, mean, log_variance, training=None):
        if not training:
            return mean
        noise = keras.random.normal(ops.shape(mean), dtype=mean.dtype, seed=self.seed_generator)
        return mean + ops.exp(0.5 * log_variance) * noise


@keras.saving.register_keras_serializable("zoo")
class Encoder(layers.Layer):
    def __init__(self, filters=(32, 64), latent=16, **kwargs):
        super().__init__(**kwargs)
        self.convs = [layers.Conv2D(width, 3, strides=2, padding="same", activation="relu") for width in filters]
        self.flatten = layers.Flatten()
        self.mean = layers.Dense(latent, name="mean")
        self.log_variance = layers.Dense(latent, name="log_variance")

    def call(self, x):
        for conv in self.convs:
            x = conv(x)
        x = self.flatten(x)
        return self.mean(x), self.log_variance(x)


@keras.saving.register_keras_serializable("zoo")
class Decoder(layers.Layer):
    def __init__(self, filters=(32, 64), side=28, **kwargs):
        super().__init__(**kwargs)
        seed = side // 2 ** len(filters)
        self.dense = layers.Dense(seed * seed * filters[-1], activation="relu")
        self.reshape = layers.Reshape((seed, seed, filters[-1]))
        self.deconvs = [
            layers.Conv2DTranspose(width, 3, strides=2, padding="same", activation="relu") for width in filters[::-1]
        ]
        self.out = layers.Conv2DTranspose(1, 3, padding="same", activation="sigmoid")

    def call(self, z):
        x = self.reshape(self.dense(z))
        for deconv in self.deconvs:
            x = deconv(x)
        return self.out(x)


@keras.saving.register_keras_serializable("zoo")
class VAE(keras.Model):
    def __init__(self, filters=(32, 64), latent=16, side=28, **kwargs):
        super().__init__(**kwargs)
        self.filters, self.latent, self.side = filters, latent, side
        self.encoder = Encoder(filters, latent)
        self.sampling = Sampling()
        self.decoder = Decoder(filters, side)

    def call(self, images, training=None):
        mean, log_variance = self.encoder(images)
        divergence = -0.5 * ops.mean(1 + log_variance - ops.square(mean) - ops.exp(log_variance))
        self.add_loss(divergence)
        reconstruction = self.decoder(self.sampling(mean, log_variance, training=training))
        return {"reconstruction": reconstruction, "mean": mean, "log_variance": log_variance}

    def get_config(self):
        return {**super().get_config(), "filters": self.filters, "latent": self.latent, "side": self.side}


def make(*, small: bool = False) -> keras.Model:
    model = VAE(filters=(4, 6), latent=5, side=12) if small else VAE()
    side = 12 if small else 28
    model(keras.Input((side, side, 1)))
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Grey images (batch, side, side, 1) of 0 to 1."""
    side = 12 if small else 28
    rng = np.random.default_rng(seed)
    return {"images": rng.random((batch, side, side, 1), dtype=np.float32)}
