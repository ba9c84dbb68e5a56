"""Convolutional variational autoencoder of 32 x 32 images."""

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch"}}


class Encoder(nn.Module):
    def __init__(self, width: int, latent: int) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(3, width, kernel_size=3, stride=2, padding=1)
        self.conv2 = nn.Conv2d(width, 2 * width, kernel_size=3, stride=2, padding=1)
        self.conv3 = nn.Conv2d(2 * width, 4 * width, kernel_size=3, stride=2, padding=1)
        self.fc_mu = nn.Linear(4 * width * 4 * 4, latent)
        self.fc_logvar = nn.Linear(4 * width * 4 * 4, latent)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.relu(self.conv1(x))
        x = torch.relu(self.conv2(x))
        x = torch.relu(self.conv3(x))
        x = torch.flatten(x, 1)
        return self.fc_mu(x), self.fc_logvar(x)


class Decoder(nn.Module):
    def __init__(self, width: int, latent: int) -> None:
        super().__init__()
        self.fc = nn.Linear(latent, 4 * width * 4 * 4)
        self.unflatten = nn.Unflatten(1, (4 * width, 4, 4))
        self.deconv1 = nn.ConvTranspose2d(4 * width, 2 * width, kernel_size=3, stride=2, padding=1, output_padding=1)
        self.deconv2 = nn.ConvTranspose2d(2 * width, width, kernel_size=3, stride=2, padding=1, output_padding=1)
        self.deconv3 = nn.ConvTranspose2d(width, 3, kernel_size=3, stride=2, padding=1, output_padding=1)

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        x = self.unflatten(torch.relu(self.fc(z)))
        x = torch.relu(self.deconv1(x))
        x = torch.relu(self.deconv2(x))
        return torch.sigmoid(self.deconv3(x))


class VAE(nn.Module):
    """Returns the reconstruction, the mean and the log-variance of the latent code."""

    def __init__(self, width: int = 32, latent: int = 128) -> None:
        super().__init__()
        self.encoder = Encoder(width, latent)
        self.decoder = Decoder(width, latent)

    def reparameterize(self, mu: torch.Tensor, logvar: torch.Tensor) -> torch.Tensor:
        """A sample in training; the mean itself in eval, so that a trained model is a function of its input."""
        if not self.training:
            return mu
        return mu + torch.exp(0.5 * logvar) * torch.randn_like(mu)

    def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        mu, logvar = self.encoder(x)
        z = self.reparameterize(mu, logvar)
        return self.decoder(z), mu, logvar


def make(*, small: bool = False) -> nn.Module:
    model = VAE(width=4, latent=6) if small else VAE()
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, 32, 32) with values in [0, 1]."""
    rng = np.random.default_rng(seed)
    return {"x": rng.random((batch, 3, 32, 32), dtype=np.float32)}
