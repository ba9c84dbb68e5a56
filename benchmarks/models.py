"""Models at the sizes that people port, made of the zoo's classes; random weights, fixed seed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

Dynamic = dict[str, dict[int, str]]


@dataclass(frozen=True)
class Case:
    """A model by name; `make` gives (module, example inputs, axes that vary)."""

    name: str
    summary: str
    make: Callable[[], tuple[Any, dict[str, Any], Dynamic]]


def _resnet50() -> tuple[Any, dict[str, Any], Dynamic]:
    from porter.zoo.torch import resnet50

    return resnet50.make(), resnet50.inputs(batch=1), resnet50.DYNAMIC


def _bert(**sizes: int) -> tuple[Any, dict[str, Any], Dynamic]:
    from porter.zoo.torch import bert_tiny

    config = replace(bert_tiny.BertConfig(), **sizes)
    return bert_tiny.BertModel(config).eval(), bert_tiny.inputs(), bert_tiny.DYNAMIC


def _bert_base() -> tuple[Any, dict[str, Any], Dynamic]:
    return _bert(
        vocab_size=30522,
        hidden_size=768,
        num_hidden_layers=12,
        num_attention_heads=12,
        intermediate_size=3072,
        max_position_embeddings=512,
    )


def _gpt(**sizes: int) -> tuple[Any, dict[str, Any], Dynamic]:
    from porter.zoo.torch import gpt_tiny

    config = replace(gpt_tiny.GPTConfig(), vocab_size=50257, block_size=1024, **sizes)
    return gpt_tiny.GPT(config).eval(), gpt_tiny.inputs(), gpt_tiny.DYNAMIC


def _gpt2() -> tuple[Any, dict[str, Any], Dynamic]:
    return _gpt(n_layer=12, n_head=12, n_embd=768)


def _one_gigabyte() -> tuple[Any, dict[str, Any], Dynamic]:
    return _gpt(n_layer=16, n_head=16, n_embd=1024)


CASES = {
    case.name: case
    for case in (
        Case("resnet50", "ResNet-50, 224 x 224", _resnet50),
        Case("bert-base", "BERT encoder of 12 layers, width 768", _bert_base),
        Case("gpt2", "GPT-2 of 12 layers, width 768", _gpt2),
        Case("gpt-1gb", "GPT-2 of 16 layers, width 1024: 1 GB of weights", _one_gigabyte),
    )
}
