"""The convolutional half of the zoo: the catalogue, the torch models, and their hand-written Keras twins."""

import importlib
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

from porter.zoo.catalog import FRAMEWORKS, Entry, entries, find, originals, sources, twins

TORCH = [entry for entry in originals("torch") if entry.kind == "cnn"]
TWINS = [entry for entry in twins("keras") if entry.kind == "cnn"]
# Published sizes: a definition that drifts from its paper shows here first.
PARAMETERS = {
    "resnet18": ("ResNet", 11_689_512),
    "resnet50": ("ResNet", 25_557_032),
    "wrn16_4": ("WideResNet", 2_748_890),
    "densenet40_12": ("DenseNet", 1_019_722),
    "mobilenet_v2": ("MobileNetV2", 3_504_872),
    "efficientnet_b0": ("EfficientNet", 5_288_548),
    "convnext_tiny": ("ConvNeXtV2", 28_635_496),
}

torch_models = pytest.mark.parametrize("entry", TORCH, ids=lambda entry: entry.name)
keras_twins = pytest.mark.parametrize("entry", TWINS, ids=lambda entry: entry.name)


@pytest.fixture
def float64() -> Iterator[None]:
    """Both settings: the policy follows floatx only until the first layer is made."""
    keras = pytest.importorskip("keras")
    keras.config.set_floatx("float64")
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_floatx("float32")
    keras.config.set_dtype_policy("float32")


def run_torch(entry: Entry, dtype: str = "float32") -> list[np.ndarray]:
    import torch
    from torch.utils._pytree import tree_leaves

    model = entry.make(small=True).to(getattr(torch, dtype))
    feeds = {name: torch.from_numpy(array.astype(dtype)) for name, array in entry.inputs(small=True).items()}
    with torch.no_grad():
        return [tensor.numpy() for tensor in tree_leaves(model(**feeds))]


def test_catalogue_loads_no_framework() -> None:
    code = (
        "import sys, porter.zoo.catalog as catalog; catalog.entries();"
        "print([name for name in ('torch', 'tensorflow', 'keras', 'numpy') if name in sys.modules])"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "[]"


def test_a_name_alone_is_the_original_or_what_can_be_ported() -> None:
    assert find("resnet50").module == "porter.zoo.torch.resnet50"
    assert find("resnet50", to="keras") == find("resnet50")
    assert find("resnet50", to="torch").module == "porter.zoo.keras.resnet50"
    assert find("vgg16_sequential").module == "porter.zoo.keras.vgg16_sequential"
    assert find("vgg16_sequential", to="torch") == find("vgg16_sequential")
    assert find("vgg16_sequential", to="keras").module == "porter.zoo.torch.vgg16_sequential"
    assert find("tf1_convnet", to="torch").framework == "tensorflow"


def test_a_prefix_wins_over_the_target() -> None:
    assert find("keras/resnet50", to="keras").framework == "keras"
    assert find("torch/resnet50", to="torch") == find("resnet50")


def test_sources_are_all_that_is_written_elsewhere() -> None:
    assert {entry.framework for entry in sources("keras")} == {"torch"}
    assert {entry.framework for entry in sources("torch")} == {"keras", "tensorflow"}
    for target in ("keras", "torch"):
        # The folder of a port has the entry's name.
        names = [entry.name for entry in sources(target)]
        assert len(set(names)) == len(names)


@pytest.mark.parametrize(
    ("name", "to", "hint"),
    [
        ("resnet5", None, "torch/resnet50"),
        ("resnet5", "torch", "keras/resnet50"),
        ("lenet", "torch", "torch/lenet"),
        ("keras/lenet", None, "torch/lenet"),
        ("qqqq", None, "porter zoo list"),
        ("jax/resnet50", None, "torch, keras"),
    ],
)
def test_an_unknown_name_says_what_is_near(name: str, to: str | None, hint: str) -> None:
    with pytest.raises(ValueError, match=hint):
        find(name, to=to)


def test_names_are_unique_and_twins_have_originals() -> None:
    keys = [(entry.framework, entry.name) for entry in entries()]
    assert len(set(keys)) == len(keys)
    original = {entry.name: entry.framework for framework in FRAMEWORKS for entry in originals(framework)}
    assert len(original) == sum(not entry.twin for entry in entries()), "two originals have one name"
    assert all(original[entry.name] != entry.framework for entry in entries() if entry.twin)


@torch_models
def test_it_runs_and_the_seed_decides(entry: Entry) -> None:
    first, second = run_torch(entry), run_torch(entry)
    for a, b in zip(first, second, strict=True):
        assert np.array_equal(a, b)
        assert np.isfinite(a).all()
        assert 1e-2 < a.std() < 1e2
        # The two images of a batch differ, so the answers must: otherwise the input has died on the way.
        assert np.abs(a[0] - a[1]).max() > 1e-3 * np.abs(a).max()


@torch_models
def test_inputs_follow_seed_and_batch(entry: Entry) -> None:
    ours = entry.inputs(small=True, batch=3, seed=1)
    assert all(np.array_equal(ours[name], array) for name, array in entry.inputs(small=True, batch=3, seed=1).items())
    for name, array in entry.inputs(small=True, batch=3, seed=2).items():
        assert array.shape[0] == 3
        assert array.dtype == np.float32
        assert not np.array_equal(array, ours[name])


@torch_models
def test_no_weight_is_trivial(entry: Entry) -> None:
    model = entry.make(small=True)
    assert not model.training
    for name, tensor in model.state_dict().items():
        if name.endswith("num_batches_tracked"):
            continue
        assert tensor.unique().numel() > 1, name
        assert not (tensor == 0).any(), name
        if name.endswith("running_var"):
            assert 0.5 <= tensor.min() <= tensor.max() <= 1.5, name


@torch_models
def test_dynamic_axes_stay_dynamic(entry: Entry) -> None:
    import torch

    feeds = {name: torch.from_numpy(array) for name, array in entry.inputs(small=True).items()}
    assert set(entry.dynamic) <= set(feeds)
    shapes = {name: dict.fromkeys(entry.dynamic.get(name, {}), torch.export.Dim.AUTO) for name in feeds}
    program = torch.export.export(entry.make(small=True), (), feeds, dynamic_shapes=shapes, strict=False)
    placeholders = {node.name: node for node in program.graph.nodes if node.op == "placeholder"}
    for name, axes in entry.dynamic.items():
        shape = placeholders[name].meta["val"].shape
        assert {axis for axis, size in enumerate(shape) if not isinstance(size, int)} == set(axes)


@pytest.mark.parametrize("name", PARAMETERS)
def test_full_size_has_the_published_parameter_count(name: str) -> None:
    import torch

    class_name, count = PARAMETERS[name]
    definition = getattr(importlib.import_module(find(name).module), class_name)
    with torch.device("meta"):
        full = definition()
    assert sum(parameter.numel() for parameter in full.parameters()) == count


def test_the_autoencoder_samples_only_in_training() -> None:
    import torch

    model = find("vae").make(small=True)
    x = torch.from_numpy(find("vae").inputs(small=True)["x"])
    with torch.no_grad():
        reconstruction, mu, _ = model(x)
        torch.testing.assert_close(reconstruction, model.decoder(mu))
        model.train()
        assert not torch.equal(model(x)[0], model(x)[0])


@keras_twins
def test_twin_equals_its_torch_model(entry: Entry, float64: None) -> None:
    import torch

    original = find(entry.name)
    twin = entry.make(small=True)
    torch_model = original.make(small=True).double()
    importlib.import_module(entry.module).copy_weights(torch_model, twin)
    x = original.inputs(small=True)["x"].astype("float64")
    with torch.no_grad():
        expected = torch_model(torch.from_numpy(x)).numpy()
    actual = np.asarray(twin(np.moveaxis(x, 1, -1), training=False))
    if actual.ndim == 4:
        actual = np.moveaxis(actual, -1, 1)
    # TensorFlow resizes images in float32 whatever it is given.
    tolerance = 1e-6 if entry.name == "unet" else 1e-12
    assert np.abs(actual - expected).max() <= tolerance * np.abs(expected).max()


@keras_twins
def test_twin_has_the_same_classes_and_inputs(entry: Entry) -> None:
    original, twin = find(entry.name), entry.make(small=True)
    x, channels_last = original.inputs(small=True)["x"], entry.inputs(small=True)["x"]
    assert np.array_equal(np.moveaxis(x, 1, -1), channels_last)
    assert type(twin).__name__ == type(original.make(small=True)).__name__
    assert twin(channels_last).shape[0] == len(x)
    for variable in twin.weights:
        if "seed_generator" not in variable.path:
            assert len(np.unique(variable.numpy())) > 1, variable.path


def test_carry_names_what_does_not_fit() -> None:
    from porter.zoo.keras.carry import carry

    with pytest.raises(ValueError, match="conv1"):
        carry(find("resnet50").make(small=True), find("keras/unet").make(small=True))
