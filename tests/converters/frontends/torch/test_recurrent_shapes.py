"""What is set aside while torch traces a model, and put back."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from porter.converters.frontends.torch.export import export
from porter.converters.frontends.torch.recurrent_shapes import layers_kept_whole


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_the_length_of_a_sequence_stays_free(kind: type[nn.RNNBase]) -> None:
    program = export(kind(4, 6, num_layers=2, bidirectional=True, batch_first=True), (torch.randn(2, 5, 4),))
    (x,) = [node.meta["val"] for node in program.graph.nodes if node.name == "input"]
    assert isinstance(x.shape[0], torch.SymInt) and isinstance(x.shape[1], torch.SymInt)
    (layer,) = [node for node in program.graph.nodes if "aten" in str(node.target) and len(node.args) > 5]
    assert next(tuple(map(str, value.shape)) for value in layer.meta["val"]) == (str(x.shape[0]), str(x.shape[1]), "12")


def test_fused_attention_is_not_traced() -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True)
    program = export(layer, (torch.randn(2, 5, 8),))
    names = {str(node.target) for node in program.graph.nodes}
    assert not any("_transformer_encoder_layer_fwd" in name or "_native_multi_head" in name for name in names)


def test_everything_is_put_back() -> None:
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    operator = torch.ops.aten.lstm.input
    before = operator.py_kernels.get(key)
    with pytest.raises(RuntimeError, match="stop"), layers_kept_whole():
        assert operator.py_kernels[key] is not before
        assert not torch.backends.mha.get_fastpath_enabled()
        raise RuntimeError("stop")
    assert operator.py_kernels.get(key) is before
    assert torch.backends.mha.get_fastpath_enabled()
    assert nn.LSTM(4, 6)(torch.randn(3, 2, 4))[0].shape == (3, 2, 6)
