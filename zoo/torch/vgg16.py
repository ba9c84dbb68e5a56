"""VGG-16 with BatchNorm: a plain stack whose classifier flattens a feature map, so channel order matters."""

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC = {"x": {0: "batch"}}
STAGES = ((64, 2), (128, 2), (256, 3), (512, 3), (512, 3))
SMALL_STAGES = ((4, 2), (8, 2), (12, 3), (16, 3), (16, 3))


class VGG(nn.Module):
    def __init__(
        self,
        stages: Sequence[tuple[int, int]] = STAGES,
        image_size: int = 224,
        hidden: int = 4096,
        num_classes: int = 1000,
        dropout: float = 0.5,
    ) -> None:
        super().__init__()
        self.features = self._make_features(stages)
        side = image_size // 2 ** len(stages)
        self.classifier = nn.Sequential(
            nn.Linear(stages[-1][0] * side * side, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(hidden, hidden),
            nn.ReLU(inplace=True),
            nn.Dropout(dropout),
            nn.Linear(hidden, num_classes),
        )

    @staticmethod
    def _make_features(stages: Sequence[tuple[int, int]]) -> nn.Sequential:
        layers: list[nn.Module] = []
        in_channels = 3
        for channels, convolutions in stages:
            for _ in range(convolutions):
                layers.append(nn.Conv2d(in_channels, channels, kernel_size=3, padding=1))
                layers.append(nn.BatchNorm2d(channels))
                layers.append(nn.ReLU(inplace=True))
                in_channels = channels
            layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
        return nn.Sequential(*layers)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = self.features(x)
        x = torch.flatten(x, 1)
        return self.classifier(x)


def make(*, small: bool = False) -> nn.Module:
    model = VGG(SMALL_STAGES, image_size=64, hidden=32, num_classes=10) if small else VGG()
    return seed_weights(model, gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """Images (batch, 3, 224, 224), or 64 x 64 when small; the size is fixed by the first linear layer."""
    side = 64 if small else 224
    rng = np.random.default_rng(seed)
    return {"x": rng.standard_normal((batch, 3, side, side), dtype=np.float32)}
