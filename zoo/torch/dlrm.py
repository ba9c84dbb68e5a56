"""Deep learning recommendation model: embedding bags and dense features, compared pair by pair."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

DYNAMIC: dict[str, dict[int, str]] = {"dense": {0: "batch"}, "sparse": {0: "batch"}}


@dataclass(frozen=True)
class DLRMConfig:
    table_sizes: tuple[int, ...] = (1000, 5000, 300, 80, 2000)
    embedding_dim: int = 64
    num_dense: int = 13
    bottom_sizes: tuple[int, ...] = (256, 128)
    top_sizes: tuple[int, ...] = (192, 96)


SMALL = DLRMConfig(table_sizes=(20, 31, 12), embedding_dim=8, num_dense=5, bottom_sizes=(14,), top_sizes=(18,))


def make_mlp(sizes: Sequence[int]) -> nn.Sequential:
    """Linear layers from each size to the next, with a ReLU after each."""
    layers: list[nn.Module] = []
    for in_features, out_features in pairwise(sizes):
        layers += [nn.Linear(in_features, out_features), nn.ReLU()]
    return nn.Sequential(*layers)


class DotInteraction(nn.Module):
    """Vectors (batch, count, dim) to the dot product of each pair: (batch, count · (count - 1) / 2)."""

    rows: Tensor
    columns: Tensor

    def __init__(self, count: int) -> None:
        super().__init__()
        rows, columns = torch.tril_indices(count, count, offset=-1)
        self.register_buffer("rows", rows, persistent=False)
        self.register_buffer("columns", columns, persistent=False)

    def forward(self, vectors: Tensor) -> Tensor:
        products = torch.bmm(vectors, vectors.transpose(1, 2))
        return products[:, self.rows, self.columns]


class DLRM(nn.Module):
    """dense (batch, num_dense), sparse (batch, tables, bag) to the probability of a click (batch, 1)."""

    def __init__(self, config: DLRMConfig) -> None:
        super().__init__()
        self.tables = nn.ModuleList(
            nn.EmbeddingBag(size, config.embedding_dim, mode="sum") for size in config.table_sizes
        )
        self.bottom_mlp = make_mlp([config.num_dense, *config.bottom_sizes, config.embedding_dim])
        count = len(config.table_sizes) + 1
        self.interaction = DotInteraction(count)
        self.top_mlp = make_mlp([config.embedding_dim + count * (count - 1) // 2, *config.top_sizes])
        self.output = nn.Linear(config.top_sizes[-1], 1)

    def forward(self, dense: Tensor, sparse: Tensor) -> Tensor:
        bottom = self.bottom_mlp(dense)
        bags = [table(sparse[:, i]) for i, table in enumerate(self.tables)]
        pairs = self.interaction(torch.stack([bottom, *bags], dim=1))
        top = self.top_mlp(torch.cat([bottom, pairs], dim=1))
        return torch.sigmoid(self.output(top))


def make(*, small: bool = False) -> nn.Module:
    """The model in eval mode with seeded weights."""
    return seed_weights(DLRM(SMALL if small else DLRMConfig()), gain=2.0)


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """dense: float32 (batch, num_dense); sparse: int64 (batch, tables, bag)."""
    config, bag = (SMALL, 4) if small else (DLRMConfig(), 10)
    rng = np.random.default_rng(seed)
    return {
        "dense": rng.standard_normal((batch, config.num_dense), dtype=np.float32),
        "sparse": np.stack([rng.integers(0, rows, (batch, bag)) for rows in config.table_sizes], axis=1),
    }
