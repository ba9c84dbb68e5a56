"""Two-layer graph convolutional network over an edge list."""

import numpy as np
import torch
from torch import Tensor, nn

from porter.zoo.torch.seeding import seed_weights

FULL = {"in_features": 500, "hidden_features": 64, "num_classes": 7}
SMALL = {"in_features": 9, "hidden_features": 8, "num_classes": 4}

DYNAMIC: dict[str, dict[int, str]] = {"x": {0: "nodes"}, "edge_index": {1: "edges"}}


class GraphConv(nn.Module):
    """Sums neighbours (and the node itself), each edge scaled by 1 / sqrt(degree of source · degree of target).

    x (nodes, in_features), source and target (edges,) to (nodes, out_features).
    """

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.linear = nn.Linear(in_features, out_features, bias=False)
        self.bias = nn.Parameter(torch.zeros(out_features))

    def forward(self, x: Tensor, source: Tensor, target: Tensor) -> Tensor:
        x = self.linear(x)
        # A self-loop for every node makes each degree at least 1.
        degree = torch.ones_like(x[:, 0]).index_add(0, target, torch.ones_like(target, dtype=x.dtype))
        inverse_root = degree.rsqrt()
        norm = inverse_root[source] * inverse_root[target]
        messages = x[source] * norm.unsqueeze(-1)
        index = target.unsqueeze(-1).expand_as(messages)
        gathered = torch.zeros_like(x).scatter_add(0, index, messages)
        return gathered + x / degree.unsqueeze(-1) + self.bias


class GCN(nn.Module):
    """x (nodes, in_features), edge_index (2, edges) as rows source and target to logits (nodes, num_classes)."""

    def __init__(self, in_features: int, hidden_features: int, num_classes: int, dropout: float = 0.5) -> None:
        super().__init__()
        self.conv1 = GraphConv(in_features, hidden_features)
        self.dropout = nn.Dropout(dropout)
        self.conv2 = GraphConv(hidden_features, num_classes)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        source, target = edge_index
        x = torch.relu(self.conv1(x, source, target))
        return self.conv2(self.dropout(x), source, target)


def make(*, small: bool = False) -> nn.Module:
    """The network in eval mode with seeded weights."""
    return seed_weights(GCN(**(SMALL if small else FULL)))


def inputs(*, small: bool = False, batch: int = 2, seed: int = 0) -> dict[str, np.ndarray]:
    """x: float32 (nodes, in_features); edge_index: int64 (2, edges): `batch` graphs side by side, no edge between."""
    size, nodes, edges = (SMALL, 6, 13) if small else (FULL, 200, 800)
    rng = np.random.default_rng(seed)
    graphs = [rng.integers(0, nodes, (2, edges)) + nodes * i for i in range(batch)]
    x = rng.standard_normal((batch * nodes, size["in_features"]), dtype=np.float32)
    return {"x": x, "edge_index": np.concatenate(graphs, axis=1)}
