"""Spatial transformer: a small network predicts an affine warp, the classifier sees the warped image."""

import numpy as np
import torch
import torch.nn.functional as F
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch"}}


class SpatialTransformer(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.localization = nn.Sequential(
            nn.Conv2d(1, width, kernel_size=7),
            nn.MaxPool2d(2, stride=2),
            nn.ReLU(inplace=True),
            nn.Conv2d(width, width + 2, kernel_size=5),
            nn.MaxPool2d(2, stride=2),
            nn.ReLU(inplace=True),
        )
        self.fc_loc = nn.Sequential(
            nn.Linear((width + 2) * 3 * 3, 32),
            nn.ReLU(inplace=True),
            nn.Linear(32, 2 * 3),
        )

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        theta = self.fc_loc(torch.flatten(self.localization(x), 1))
        theta = theta.view(-1, 2, 3)
        grid = F.affine_grid(theta, list(x.size()), align_corners=False)
        return F.grid_sample(x, grid, align_corners=False)


class STN(nn.Module):
    def __init__(self, width: int = 10, num_classes: int = 10) -> None:
        super().__init__()
        self.transformer = SpatialTransformer(width)
        self.conv1 = nn.Conv2d(1, width, kernel_size=5)
        self.conv2 = nn.Conv2d(width, 2 * width, kernel_size=5)
        self.conv2_drop = nn.Dropout2d()
        self.fc1 = nn.Linear(2 * width * 4 * 4, 50)
        self.fc2 = nn.Linear(50, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.transformer(x)
        x = torch.relu(F.max_pool2d(self.conv1(x), 2))
        x = torch.relu(F.max_pool2d(self.conv2_drop(self.conv2(x)), 2))
        x = torch.flatten(x, 1)
        x = torch.relu(self.fc1(x))
        x = F.dropout(x, training=self.training)
        return self.fc2(x)


def make(*, small: bool = False) -> nn.Module:
    model = STN(width=4) if small else STN()
    seed_weights(model, gain=2.0)
    # Near the identity, as one initialises it: a warp drawn at random would show a few pixels of the image only.
    last = model.transformer.fc_loc[-1]
    with torch.no_grad():
        last.weight.mul_(0.1)
        last.bias.add_(torch.tensor([1.0, 0.0, 0.0, 0.0, 1.0, 0.0]))
    return model


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Grey images (batch, 1, 28, 28); the size is fixed by the linear layers."""
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 1, 28, 28), dtype=np.float32)}
