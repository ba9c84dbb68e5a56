"""The Keras originals of the zoo: sound, seeded, dynamic, savable, and equal to their hand-written torch twins."""

import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import keras
import numpy as np
import pytest
import torch

from porter.zoo.catalog import Entry, find, originals, twins

ORIGINALS = originals("keras")
TWINS = twins("torch")
FUNCTIONAL = [entry for entry in ORIGINALS if not entry.name.startswith(("vae", "seq2seq", "translation"))]
# Published sizes of the models of keras.applications; a definition that drifts shows here first. Those of EfficientNet
# count the 7 numbers of an adapted Normalization, which are constants here.
PARAMETERS = {
    "resnet50_functional": ("resnet", 25_636_712),
    "mobilenet_v2_functional": ("mobilenet_v2", 3_538_984),
    "efficientnet_b0_functional": ("efficientnet", 5_330_571 - 7),
    "vgg16_sequential": ("vgg16", 138_357_544),
}

models = pytest.mark.parametrize("entry", ORIGINALS, ids=lambda entry: entry.name)
functional = pytest.mark.parametrize("entry", FUNCTIONAL, ids=lambda entry: entry.name)
torch_twins = pytest.mark.parametrize("entry", TWINS, ids=lambda entry: entry.name)


@pytest.fixture
def float64() -> Iterator[None]:
    """In both frameworks: constants that a model makes are in the default dtype."""
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    torch.set_default_dtype(torch.float64)
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")
    torch.set_default_dtype(torch.float32)


def run(model: keras.Model, inputs: dict[str, np.ndarray], training: bool = False) -> list[np.ndarray]:
    """The outputs, flat: a model of keras.Inputs takes one structure, any other takes arguments."""
    if isinstance(model, keras.Sequential) or len(inputs) == 1:
        answer = model(*inputs.values(), training=training)
    elif hasattr(model, "_inputs_struct"):
        answer = model(inputs, training=training)
    else:
        answer = model(**inputs)
    return [np.asarray(output) for output in keras.tree.flatten(answer)]


def grown(inputs: dict[str, np.ndarray], dynamic: dict[str, dict[int, str]]) -> dict[str, np.ndarray]:
    """Inputs in which every axis that may vary is longer, each symbol by another length."""
    symbols = sorted({symbol for axes in dynamic.values() for symbol in axes.values()})
    longer = {symbol: 1 + index for index, symbol in enumerate(symbols)}
    for name, axes in dynamic.items():
        for axis, symbol in axes.items():
            more = np.take(inputs[name], range(longer[symbol]), axis=axis, mode="wrap")
            inputs = {**inputs, name: np.concatenate([inputs[name], more], axis=axis)}
    return inputs


def unround_constants(model: keras.Model) -> None:
    """Keras rounds the numbers given to Rescaling and Normalization to float32, in float64 as well."""
    for layer in model.layers:
        if isinstance(layer, keras.layers.Rescaling):
            layer.scale = np.float64(layer.scale)
        if isinstance(layer, keras.layers.Normalization):
            layer.mean, layer.variance = (
                keras.ops.convert_to_tensor(np.reshape(values, (1, 1, 1, -1)), "float64")
                for values in (layer.input_mean, layer.input_variance)
            )


@models
def test_it_runs_and_the_seed_decides(entry: Entry) -> None:
    first = run(entry.make(small=True), entry.inputs(small=True))
    second = run(entry.make(small=True), entry.inputs(small=True))
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b)
        assert a.shape[0] == 2
        assert np.isfinite(a).all()
        assert 1e-2 < a.std() < 1e2
        assert np.abs(a[0] - a[1]).max() > 1e-2 * np.abs(a).max(), "both rows of the batch have the same answer"


@models
def test_inputs_follow_seed_and_batch(entry: Entry) -> None:
    ours = entry.inputs(small=True, batch=3, seed=1)
    again, other = entry.inputs(small=True, batch=3, seed=1), entry.inputs(small=True, batch=3, seed=2)
    for name, array in ours.items():
        assert array.shape[0] == 3
        assert np.array_equal(array, again[name])
        assert not np.array_equal(array, other[name])


@models
def test_it_runs_at_other_sizes(entry: Entry) -> None:
    model, inputs = entry.make(small=True), entry.inputs(small=True, batch=3)
    assert set(entry.dynamic) == set(inputs)
    alone = run(model, {name: array[:1] for name, array in inputs.items()})
    for one, all_three in zip(alone, run(model, inputs), strict=True):
        np.testing.assert_allclose(all_three[:1], one, rtol=1e-4, atol=1e-5)
    larger = grown(inputs, entry.dynamic)
    assert all(larger[name].shape != array.shape for name, array in inputs.items())
    for output in run(model, larger):
        assert output.shape[0] == len(next(iter(larger.values())))
        assert np.isfinite(output).all()


@functional
def test_only_the_dynamic_axes_are_open(entry: Entry) -> None:
    model = entry.make(small=True)
    assert [tensor.name for tensor in model.inputs] == list(entry.inputs(small=True))
    for tensor in model.inputs:
        assert {axis for axis, size in enumerate(tensor.shape) if size is None} == set(entry.dynamic[tensor.name])


@models
def test_no_weight_is_trivial(entry: Entry) -> None:
    for variable in entry.make(small=True).weights:
        if "seed_generator" in variable.path or variable.path.endswith("/count"):
            continue
        value = variable.numpy()
        assert value.size == 1 or len(np.unique(value)) > 1, variable.path
        assert (value != 0).all(), variable.path
        if variable.path.endswith("variance"):
            assert value.min() > 0, variable.path


@models
def test_a_saved_model_comes_back(entry: Entry, tmp_path: Path) -> None:
    model, inputs = entry.make(small=True), entry.inputs(small=True)
    model.save(tmp_path / "model.keras")
    loaded = keras.models.load_model(tmp_path / "model.keras")
    for ours, theirs in zip(run(model, inputs), run(loaded, inputs), strict=True):
        np.testing.assert_array_equal(theirs, ours)


@pytest.mark.parametrize("name", PARAMETERS)
def test_full_size_has_the_published_parameter_count(name: str) -> None:
    function, count = PARAMETERS[name]
    entry = find(name)
    assert getattr(importlib.import_module(entry.module), function)().count_params() == count


@torch_twins
def test_twin_equals_its_keras_model(entry: Entry, float64: None) -> None:
    original = find(entry.name)
    model, twin = original.make(small=True), entry.make(small=True)
    assert next(twin.parameters()).dtype == torch.float64
    unround_constants(model)
    importlib.import_module(entry.module).copy_weights(model, twin)
    for batch in (2, 3):
        (x,) = original.inputs(small=True, batch=batch).values()
        assert np.array_equal(next(iter(entry.inputs(small=True, batch=batch).values())), x.transpose(0, 3, 1, 2))
        # Odd sizes: padding that is right for even ones alone is wrong here.
        sizes = [x, x[:, :53, :30], x[:, :30, :53]] if 1 in original.dynamic[next(iter(original.dynamic))] else [x]
        for images in sizes:
            (expected,) = run(model, {"x": images.astype("float64")})
            with torch.no_grad():
                actual = twin(torch.from_numpy(images.transpose(0, 3, 1, 2).astype("float64"))).numpy()
            assert expected.dtype == actual.dtype == np.float64
            assert np.abs(actual - expected).max() <= 1e-12 * np.abs(expected).max()


@torch_twins
def test_twin_trains_with_the_same_constants(entry: Entry) -> None:
    model, twin = find(entry.name).make(small=True), entry.make(small=True)
    importlib.import_module(entry.module).copy_weights(model, twin)
    norms = [layer for layer in model.layers if isinstance(layer, keras.layers.BatchNormalization)]
    by_mean = {tuple(layer.moving_mean.numpy()): layer for layer in norms}
    modules = [module for module in twin.modules() if isinstance(module, torch.nn.BatchNorm2d)]
    assert len(modules) == len(norms) == len(by_mean)
    for module in modules:
        layer = by_mean[tuple(module.running_mean.numpy())]
        np.testing.assert_array_equal(module.running_var.numpy(), layer.moving_variance.numpy())
        assert (module.eps, 1 - module.momentum) == pytest.approx((layer.epsilon, layer.momentum), abs=1e-12)
    drops = [layer.rate for layer in model.layers if isinstance(layer, keras.layers.Dropout)]
    rates = [getattr(module, "p", getattr(module, "rate", None)) for module in twin.modules() if _drops(module)]
    assert sorted(rate for rate in drops if rate) == pytest.approx(sorted(rate for rate in rates if rate))


def _drops(module: torch.nn.Module) -> bool:
    return "Drop" in type(module).__name__


@torch_twins
def test_twin_has_as_many_parameters_at_full_size(entry: Entry) -> None:
    expected = {"densenet40_12_functional": 1_019_722} | {name: count for name, (_, count) in PARAMETERS.items()}
    with torch.device("meta"):
        full = next(made() for name, made in vars(importlib.import_module(entry.module)).items() if name in _CLASSES)
    own = sum(p.numel() for p in full.parameters())
    statistics = sum(b.numel() for name, b in full.named_buffers() if "running" in name)
    counted = 0 if entry.name.startswith("densenet") else statistics
    assert own + counted == expected[entry.name]


_CLASSES = ("ResNet", "MobileNetV2", "EfficientNet", "DenseNet", "VGG")


def test_a_weight_without_a_place_is_named() -> None:
    carry = importlib.import_module("porter.zoo.torch.carry").carry
    model, twin = find("vgg16_sequential").make(small=True), torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3))
    with pytest.raises(ValueError, match="block1_conv2/kernel"):
        carry(model, twin, lambda path: model.get_layer("block1_conv1"))
    with pytest.raises(ValueError, match=r"0: Conv2d has no weight \(4, 4, 3, 3\)"):
        carry(model, twin, lambda path: model.get_layer("block1_conv2"))


@pytest.mark.parametrize("name", ["masked_lstm", "seq2seq_attention", "translation_transformer"])
def test_more_padding_changes_nothing(name: str) -> None:
    entry = find(name)
    model, inputs = entry.make(small=True), entry.inputs(small=True)
    first = next(iter(inputs))
    padded = {**inputs, first: np.pad(inputs[first], ((0, 0), (0, 3)))}
    assert (inputs[first][1:] == 0).any() and (inputs[first][0] != 0).all()
    for short, long in zip(run(model, inputs), run(model, padded), strict=True):
        long = long[:, : short.shape[1]]
        kept = inputs[first] != 0 if name == "masked_lstm" and short.ndim == 3 else slice(None)
        np.testing.assert_allclose(long[kept], short[kept], rtol=1e-4, atol=1e-5)


def test_sound_does_not_look_ahead() -> None:
    model, inputs = find("wavenet").make(small=True), find("wavenet").inputs(small=True)
    later = {"sound": inputs["sound"].copy()}
    later["sound"][:, 10:] += 1
    (before,), (after,) = run(model, inputs), run(model, later)
    np.testing.assert_allclose(after[:, :10], before[:, :10], atol=1e-5)
    assert np.abs(after[:, 10:] - before[:, 10:]).max() > 0.1


def test_the_autoencoder_samples_only_in_training() -> None:
    model, inputs = find("vae_subclassed").make(small=True), find("vae_subclassed").inputs(small=True)
    draws = [np.asarray(model(inputs["images"], training=True)["reconstruction"]) for _ in range(2)]
    assert not np.array_equal(*draws)
    answer: Any = model(inputs["images"])
    np.testing.assert_array_equal(np.asarray(answer["reconstruction"]), np.asarray(model.decoder(answer["mean"])))


def test_photographs_are_bytes_and_their_statistics_are_used() -> None:
    model, inputs = find("photo_classifier").make(small=True), find("photo_classifier").inputs(small=True)
    assert inputs["photos"].dtype == np.uint8
    inner = keras.Model(model.inputs, model.get_layer("normalization").output)(inputs["photos"]).numpy()
    np.testing.assert_allclose(inner.mean((0, 1, 2)), 0, atol=0.1)
    np.testing.assert_allclose(inner.std((0, 1, 2)), 1, atol=0.1)
