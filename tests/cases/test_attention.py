"""Attention: which positions a mask hides, and by what number."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import nn

from tests.converters.targets.keras.modules import check_module, noise

HIDDEN = {"-1e4": -1e4, "-1e9": -1e9, "least": torch.finfo(torch.float32).min}


def seen(batch: int, time: int) -> torch.Tensor:
    """Which positions of a batch are no padding; the last sequence is nothing else."""
    lengths = [time - row for row in range(batch - 1)] + [0]
    return torch.arange(time)[None] < torch.tensor(lengths)[:, None]


@pytest.mark.parametrize("name", HIDDEN)
def test_the_number_that_hides_is_the_source_s(name: str) -> None:
    """Two ports of one model had -1e4 and -1e9 for "minus infinity", which a sequence of nothing but padding shows:
    its weights are not uniform when the scores still count.
    """

    class Masked(nn.Module):
        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            scores = x @ x.transpose(1, 2) / math.sqrt(x.size(-1))
            added = (1.0 - mask[:, None].to(x.dtype)) * HIDDEN[name]
            return (scores + added).softmax(-1) @ x

    check_module(Masked(), noise(3, 4, 4), seen(3, 4), others=[[noise(2, 5, 4), seen(2, 5)]])


def test_filled_masks_in_every_spelling() -> None:
    """Where True hides and where True shows differ between functions of torch itself."""

    def every(x: torch.Tensor, mask: torch.Tensor) -> list[torch.Tensor]:
        scores = x @ x.transpose(1, 2)
        hidden = ~mask[:, None]
        least = torch.finfo(scores.dtype).min
        filled = scores.masked_fill(hidden, -1e9)
        chosen = torch.where(mask[:, None], scores, -1e9)
        lowest = scores.masked_fill(hidden.expand_as(scores), least if x.dtype == torch.float32 else -3.4e38)
        return [filled.softmax(-1), chosen.softmax(-1), lowest.softmax(-1), filled.log_softmax(1)]

    check_module(every, noise(3, 4, 4), seen(3, 4), others=[[noise(2, 5, 4), seen(2, 5)]])


def test_causal_masks_follow_the_length() -> None:
    """A triangle of the traced length was stored."""

    class Causal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("bias", torch.tril(torch.ones(16, 16, dtype=torch.bool)))
            self.qkv = nn.Linear(4, 12)

        def forward(self, x: torch.Tensor) -> list[torch.Tensor]:
            time = x.size(1)
            q, k, v = self.qkv(x).chunk(3, dim=-1)
            scores = q @ k.transpose(1, 2)
            fresh = torch.triu(torch.full((time, time), float("-inf"), dtype=x.dtype), diagonal=1)
            sliced = scores.masked_fill(~self.bias[:time, :time], float("-inf"))
            made = F.scaled_dot_product_attention(q, k, v, is_causal=True)
            return [(scores + fresh).softmax(-1) @ v, sliced.softmax(-1) @ v, made]

    check_module(Causal(), noise(2, 5, 4), others=[[noise(3, 7, 4)], [noise(1, 2, 4)]], gradients=False)


class Attending(nn.Module):
    """torch's layer with both kinds of masks."""

    def __init__(self, options: dict[str, Any], weights: bool) -> None:
        super().__init__()
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True, **options)
        self.weights = weights

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> Any:
        causal = torch.ones(x.size(1), x.size(1), dtype=torch.bool).triu(1)
        return self.attention(
            x, x, x, key_padding_mask=~mask, attn_mask=causal, need_weights=self.weights, average_attn_weights=False
        )[: 1 + self.weights]


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("options", [{}, {"bias": False}, {"add_bias_kv": True}, {"add_zero_attn": True}], ids=str)
def test_multi_head_attention_with_both_masks(options: dict[str, Any], weights: bool) -> None:
    """One of the masks was taken for the other, or True for False."""
    shown = seen(3, 5)
    shown[-1] = True
    longer = seen(2, 6)
    longer[-1] = True
    net = Attending(options, weights)
    check_module(net, noise(3, 5, 8), shown, others=[[noise(2, 6, 8), longer]], gradients=False)


def test_an_encoder_with_padding() -> None:
    """Positions of padding are compared too: they hold whatever the source computes there."""

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            layer = nn.TransformerEncoderLayer(8, 2, 12, batch_first=True, norm_first=True)
            self.encoder = nn.TransformerEncoder(layer, 2, norm=nn.LayerNorm(8), enable_nested_tensor=False)

        def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            return self.encoder(x, src_key_padding_mask=~mask)

    shown, other = seen(3, 5), seen(2, 7)
    shown[-1] = other[-1] = True
    check_module(Encoder(), noise(3, 5, 8), shown, others=[[noise(2, 7, 8), other]], gradients=False, rtol=1e-11)
