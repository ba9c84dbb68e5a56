"""LeNet-5: the smallest convolutional classifier, with the average pooling and tanh of the original."""

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch"}}


class LeNet(nn.Module):
    def __init__(self, width: int = 6, hidden: int = 120, num_classes: int = 10) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, kernel_size=5)
        self.conv2 = nn.Conv2d(width, 2 * width + 4, kernel_size=5)
        self.pool = nn.AvgPool2d(2)
        self.fc1 = nn.Linear((2 * width + 4) * 5 * 5, hidden)
        self.fc2 = nn.Linear(hidden, 84)
        self.fc3 = nn.Linear(84, num_classes)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.pool(torch.tanh(self.conv1(x)))
        x = self.pool(torch.tanh(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = torch.tanh(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return self.fc3(x)


def make(*, small: bool = False) -> nn.Module:
    model = LeNet(width=4, hidden=32) if small else LeNet()
    return seed_weights(model)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Grey images (batch, 1, 32, 32); the size is fixed by the first linear layer."""
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 1, 32, 32), dtype=np.float32)}
