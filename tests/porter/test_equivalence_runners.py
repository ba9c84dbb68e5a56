"""Runners: what goes in and out, in which precision, and that nothing is left changed."""

from __future__ import annotations

import dataclasses

import keras
import numpy as np
import pytest
import torch
from torch import nn

from porter.errors import InputError
from porter.runners.keras import KerasRunner
from porter.runners.keras_paths import layer_paths
from porter.runners.torch import TorchRunner
from tests.porter import equivalence_pair as pair


@dataclasses.dataclass
class Outputs:
    first: torch.Tensor
    hidden: tuple[torch.Tensor, ...]
    unset: torch.Tensor | None = None


class Nested(nn.Module):
    def forward(self, x: torch.Tensor, *, scale: torch.Tensor) -> Outputs:
        # A reference that said float() would otherwise be rounded to float32.
        return Outputs(x.float() * scale, (x + 1, torch.zeros(2, dtype=torch.float32)))


def test_torch_outputs_are_flattened_by_name() -> None:
    runner = TorchRunner(Nested(), input_names=[None, "scale"])
    inputs = [np.ones((2, 3)), np.float64(2.0)]
    single, double = runner.run(inputs), runner.run(inputs, "float64")
    assert runner.output_names == ["first", "hidden[0]", "hidden[1]"]
    assert [x.dtype for x in single] == [np.float32] * 3
    assert [x.dtype for x in double] == [np.float64] * 3


def test_torch_module_is_left_alone() -> None:
    net = pair.torch_net().train()
    before = {name: value.clone() for name, value in net.state_dict().items()}
    runner = TorchRunner(net)
    runner.run([pair.example()])
    runner.perturbed(np.random.default_rng(0)).run([pair.example()], "float64")
    assert net.training
    assert all(torch.equal(value, before[name]) for name, value in net.state_dict().items())
    assert torch.get_default_dtype() == torch.float32
    assert not any(module._forward_hooks for module in net.modules())


def test_perturbed_runs_move_by_about_one_unit() -> None:
    net = pair.torch_net()
    for runner, x in (
        (TorchRunner(net), pair.example()),
        (KerasRunner(lambda: pair.keras_net(net)), pair.example().transpose(0, 2, 3, 1)),
    ):
        exact = runner.run([x], "float64")[0]
        moved = runner.perturbed(np.random.default_rng(0)).run([x], "float64")[0]
        again = runner.run([x], "float64")[0]
        shift = np.linalg.norm(moved - exact) / np.linalg.norm(exact)
        assert 1e-9 < shift < 1e-5
        assert np.array_equal(exact, again)


def test_unknown_output_is_named() -> None:
    class Odd(nn.Module):
        def forward(self, x: torch.Tensor) -> dict[str, object]:
            return {"y": x, "cache": object()}

    with pytest.raises(InputError, match="cache is a object"):
        TorchRunner(Odd()).run([np.ones(2)])


def test_permutations_must_match() -> None:
    with pytest.raises(InputError, match="input permutations"):
        TorchRunner(nn.Identity(), input_permutations=[(0, 1), None]).run([np.ones((2, 3))])


def test_output_permutation_is_undone() -> None:
    runner = KerasRunner(
        lambda: keras.Sequential([keras.layers.ReLU()]),
        input_permutations=[(0, 2, 3, 1)],
        output_permutations=[(0, 2, 3, 1)],
    )
    x = np.abs(pair.example())
    assert np.array_equal(runner.run([x])[0], x)


def functional() -> keras.Model:
    a, b = keras.Input((4,), name="a"), keras.Input((4,), name="b")
    inner = keras.Sequential([keras.layers.Dense(3, name="d"), keras.layers.BatchNormalization()], name="inner")
    return keras.Model([a, b], inner(keras.layers.Concatenate(name="cat")([a, b])))


class Unbuildable(keras.Model):
    def __init__(self, widths: np.ndarray) -> None:
        super().__init__()
        self.layers_ = [keras.layers.Dense(int(w)) for w in widths]

    def call(self, x):
        for layer in self.layers_:
            x = layer(x)
        return x


@keras.saving.register_keras_serializable("tests")
class Configured(keras.layers.Layer):
    def __init__(self, width: int, **kwargs: object) -> None:
        super().__init__(**kwargs)
        self.width = width
        self.dense = keras.layers.Dense(width)

    def build(self, shape: tuple[int, ...]) -> None:
        self.dense.build(shape)

    def call(self, x):
        return self.dense(x)

    def get_config(self) -> dict[str, object]:
        return {**super().get_config(), "width": self.width}


@pytest.mark.parametrize("mode", ["eager", "function"])
def test_live_keras_model_is_copied_into_float64(mode: str) -> None:
    model = functional()
    runner = KerasRunner.from_model(model, mode=mode)
    x = [np.random.default_rng(s).standard_normal((2, 4)) for s in (0, 1)]
    assert runner.why_not("float64") is None
    single, double = runner.run(x)[0], runner.run(x, "float64")[0]
    assert (single.dtype, double.dtype) == (np.float32, np.float64)
    assert 0 < np.abs(single - double).max() < 1e-5
    assert keras.config.floatx() == "float32"
    assert keras.config.dtype_policy().name == "float32"
    assert model.dtype == "float32"


def test_live_model_with_own_layers_is_copied() -> None:
    model = keras.Sequential([keras.Input((4,)), Configured(3), keras.layers.Bidirectional(keras.layers.LSTM(2))][:2])
    runner = KerasRunner.from_model(model)
    assert runner.run([np.ones((2, 4))], "float64")[0].dtype == np.float64


def test_adapted_statistics_are_in_the_copy() -> None:
    x = np.random.default_rng(0).random((8, 4)) * 200 + 50
    normalization = keras.layers.Normalization()
    normalization.adapt(x)
    runner = KerasRunner.from_model(keras.Sequential([keras.Input((4,)), normalization]))
    expected = (x - x.mean(axis=0)) / x.std(axis=0)
    np.testing.assert_allclose(runner.run([x], "float64")[0], expected, rtol=1e-5, atol=1e-5)
    moved = runner.perturbed(np.random.default_rng(0), unit=0.5).run([x], "float64")[0]
    assert np.abs(moved - expected).max() > 0.1
    np.testing.assert_allclose(runner.run([x], "float64")[0], expected, rtol=1e-5, atol=1e-5)


def test_a_sequential_model_takes_its_input_by_the_inputs_own_name() -> None:
    model = keras.Sequential([keras.Input((4,), name="features"), keras.layers.Dense(3)])
    runner = KerasRunner.from_model(model, input_names=["features"])
    assert runner.run([np.ones((2, 4))])[0].shape == (2, 3)


@pytest.mark.parametrize("mode", ["eager", "function"])
def test_a_model_that_its_configuration_does_not_rebuild_computes_in_float64_itself(mode: str) -> None:
    model = Unbuildable(np.array([3, 2]))
    model(np.ones((1, 4), dtype=np.float32))
    runner = KerasRunner.from_model(model, mode=mode)
    x = np.random.default_rng(0).standard_normal((1, 4))
    single = runner.run([x])[0]
    (first, second), (b1, b2) = ([np.asarray(w, "float64") for w in model.get_weights()[part::2]] for part in (0, 1))
    assert runner.why_not("float64") is None
    for _ in range(2):  # its own variables come back in between
        double = runner.run([x], "float64")[0]
        assert double.dtype == np.float64
        np.testing.assert_allclose(double, (x @ first + b1) @ second + b2, rtol=1e-14, atol=1e-15)
        np.testing.assert_array_equal(runner.run([x])[0], single)
    moved = runner.perturbed(np.random.default_rng(1)).run([x], "float64")[0]
    assert 0 < np.abs(moved - double).max() < 1e-5
    np.testing.assert_array_equal(runner.run([x], "float64")[0], double)
    assert {v.dtype for v in model.variables} == {"float32"} and model.compute_dtype == "float32"


def test_module_paths_and_outputs() -> None:
    assert list(layer_paths(functional())) == ["a", "b", "cat", "inner", "inner.0", "inner.1"]
    model = Unbuildable(np.array([3, 2]))
    assert list(layer_paths(model)) == ["layers_.0", "layers_.1"]
    runner = KerasRunner.from_model(model)
    found = runner.run_modules([np.ones((1, 4))], "float32", ["layers_.1"])
    assert found["layers_.1"][0].shape == (1, 2)
    assert "call" not in vars(model.layers_[1])
    torch_runner = TorchRunner(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))
    assert list(torch_runner.run_modules([np.ones((1, 4))])) == ["0", "1"]
