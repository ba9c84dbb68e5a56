"""The two frameworks as sides of a benchmark."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from porter.timing import benchmark
from porter.timing.frameworks import equal_threads, keras_side, torch_side
from tests.porter import equivalence_pair as pair


def test_threads_are_equal_and_reported() -> None:
    before = torch.get_num_threads()
    try:
        settings = equal_threads()
        assert settings["threads torch"] == settings["threads tensorflow"] == torch.get_num_threads()
    finally:
        torch.set_num_threads(before)


@pytest.mark.parametrize("mode", ["function", "xla", "eager"])
def test_a_pair_is_timed(mode: str) -> None:
    net = pair.torch_net().train()
    x = pair.example()
    a = torch_side(net, [x])
    b = keras_side(pair.keras_net(net), [np.ascontiguousarray(x.transpose(0, 2, 3, 1))], mode=mode)
    assert np.allclose(a.call()["probs"].numpy(), b.call()["probs"].numpy(), atol=1e-5)
    assert net.training
    bench = benchmark(a, b, rounds=5, block_seconds=0.002, warmup_seconds=0.5)
    assert bench.a.median > 0
    assert bench.b.settings["mode"] == mode
    assert bench.verdict in {"SAME", "FASTER", "SLOWER", "AMBIGUOUS"}
