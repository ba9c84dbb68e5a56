"""The sequence, tabular, graph and spectral models of the zoo: sound, seeded, dynamic, and equal to their twins."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from importlib import import_module
from types import ModuleType

import keras
import numpy as np
import pytest
import torch
from torch import Tensor, nn

NAMES = (
    "bert_tiny",
    "dlrm",
    "fourier",
    "gcn",
    "gpt_tiny",
    "gru_lm",
    "lstm_classifier",
    "mamba",
    "mixer",
    "mlp",
    "seq2seq",
    "t5_bias",
    "transformer",
    "vit_tiny",
)
# TensorFlow's GELU divides by a square root of 2 that it rounded to float32, in float64 too.
GELU_ERROR = 1e-7
TWIN_TOLERANCES = {"bert_tiny": GELU_ERROR, "lstm_classifier": 1e-13, "vit_tiny": GELU_ERROR}
IMAGES = ("images",)


@pytest.fixture(params=NAMES)
def zoo(request: pytest.FixtureRequest) -> ModuleType:
    return import_module(f"porter.zoo.torch.{request.param}")


@pytest.fixture
def float64_keras() -> Iterator[None]:
    policy = keras.config.dtype_policy()
    keras.config.set_dtype_policy("float64")
    yield
    keras.config.set_dtype_policy(policy)


def tensors(arrays: dict[str, np.ndarray], dtype: torch.dtype = torch.float32) -> dict[str, Tensor]:
    values = {name: torch.from_numpy(array) for name, array in arrays.items()}
    return {name: value.to(dtype) if value.is_floating_point() else value for name, value in values.items()}


def as_tuple(outputs: Tensor | tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    return outputs if isinstance(outputs, tuple) else (outputs,)


@torch.no_grad()
def run(model: nn.Module, arrays: dict[str, np.ndarray], dtype: torch.dtype = torch.float32) -> tuple[Tensor, ...]:
    return as_tuple(model(**tensors(arrays, dtype)))


def test_small_model_runs_and_uses_every_batch_row(zoo: ModuleType) -> None:
    model = zoo.make(small=True)
    assert not model.training
    for output in run(model, zoo.inputs(small=True, batch=3)):
        assert output.isfinite().all()
        assert output.std() > 1e-3


def test_full_inputs_fit_the_full_model(zoo: ModuleType) -> None:
    small, full = zoo.inputs(small=True), zoo.inputs()
    assert full.keys() == small.keys()
    for name, array in full.items():
        assert array.dtype == small[name].dtype
        assert array.dtype in (np.float32, np.int64, np.bool_)
    for output in run(zoo.make(), zoo.inputs(batch=1)):
        assert output.isfinite().all()


def test_weights_and_inputs_follow_from_the_seed(zoo: ModuleType) -> None:
    torch.manual_seed(1)
    first = zoo.make(small=True).state_dict()
    torch.manual_seed(2)
    second = zoo.make(small=True).state_dict()
    for name in first:
        assert torch.equal(first[name], second[name]), name
    for name, array in zoo.inputs(small=True, seed=3).items():
        np.testing.assert_array_equal(array, zoo.inputs(small=True, seed=3)[name])
    assert any((array != zoo.inputs(small=True, seed=4)[name]).any() for name, array in zoo.inputs(small=True).items())


def test_no_tensor_is_constant(zoo: ModuleType) -> None:
    for name, tensor in zoo.make(small=True).state_dict().items():
        if tensor.numel() > 1:
            assert tensor.float().std() > 0, name
        else:
            assert tensor.item() not in (0, 1), name


def test_float64_agrees_with_float32(zoo: ModuleType) -> None:
    arrays = zoo.inputs(small=True)
    single = run(zoo.make(small=True), arrays)
    double = run(zoo.make(small=True).double(), arrays, torch.float64)
    for low, high in zip(single, double, strict=True):
        assert high.dtype == torch.float64
        assert (low - high).abs().max() <= 1e-5 * high.abs().max()


def recurrent_shape(x, hx, params, has_biases, num_layers, dropout, train, bidirectional, batch_first):
    """The outputs of aten.lstm and aten.gru, by shape alone."""
    states = list(hx) if isinstance(hx, list | tuple) else [hx]
    width = states[0].shape[-1] * (2 if bidirectional else 1)
    return (x.new_empty((*x.shape[:2], width)), *(torch.empty_like(state) for state in states))


@contextmanager
def recurrent_length_kept() -> Iterator[None]:
    """torch.export unrolls recurrent layers merely to learn their shapes, which fixes the length of the sequence."""
    key = torch._C.DispatchKey.CompositeImplicitAutograd
    with pytest.MonkeyPatch.context() as patch:
        for operator in (torch.ops.aten.lstm.input, torch.ops.aten.gru.input):
            patch.setitem(operator.py_kernels, key, recurrent_shape)
            operator._dispatch_cache.clear()
        yield
    for operator in (torch.ops.aten.lstm.input, torch.ops.aten.gru.input):
        operator._dispatch_cache.clear()


@pytest.mark.filterwarnings("ignore:.*_flat_weights:UserWarning")  # export copies the weights of recurrent layers
def test_dynamic_axes_stay_symbolic_in_an_export(zoo: ModuleType) -> None:
    model = zoo.make(small=True)
    arrays = zoo.inputs(small=True)
    assert zoo.DYNAMIC.keys() <= arrays.keys()
    dynamic = {name: dict.fromkeys(zoo.DYNAMIC.get(name, {}), torch.export.Dim.AUTO) for name in arrays}
    with recurrent_length_kept():
        program = torch.export.export(model, (), tensors(arrays), dynamic_shapes=dynamic, strict=False)

    placeholders = {node.name: node.meta["val"] for node in program.graph.nodes if node.op == "placeholder"}
    symbols: dict[str, str] = {}
    for name, array in arrays.items():
        for axis, size in enumerate(placeholders[name].shape):
            symbol = zoo.DYNAMIC.get(name, {}).get(axis)
            assert isinstance(size, torch.SymInt) == (symbol is not None), (name, axis, size)
            if symbol is None:
                assert size == array.shape[axis]
            else:
                assert symbols.setdefault(symbol, str(size)) == str(size), f"{name} axis {axis} is not one {symbol}"
    assert len(set(symbols.values())) == len(symbols)

    larger = zoo.inputs(small=True, batch=5, seed=1)
    for ours, theirs in zip(run(model, larger), run(program.module(), larger), strict=True):
        torch.testing.assert_close(ours, theirs)


@pytest.mark.parametrize("name", TWIN_TOLERANCES)
def test_keras_twin_has_the_sizes_of_the_torch_model(name: str) -> None:
    def sizes(framework: str) -> list[dict[str, object]]:
        zoo = import_module(f"porter.zoo.{framework}.{name}")
        both = (zoo.SMALL, zoo.BertConfig()) if name == "bert_tiny" else (zoo.SMALL, zoo.FULL)
        return [size if isinstance(size, dict) else asdict(size) for size in both]

    assert sizes("keras") == sizes("torch")


@pytest.mark.parametrize("name", TWIN_TOLERANCES)
def test_keras_twin_equals_the_torch_model(name: str, float64_keras: None) -> None:
    torch_zoo, keras_zoo = import_module(f"porter.zoo.torch.{name}"), import_module(f"porter.zoo.keras.{name}")
    torch_model, keras_model = torch_zoo.make(small=True).double(), keras_zoo.make(small=True)
    keras_zoo.copy_weights(torch_model, keras_model)

    arrays, twin_arrays = torch_zoo.inputs(small=True), keras_zoo.inputs(small=True)
    for key, array in arrays.items():
        expected = array.transpose(0, 2, 3, 1) if key in IMAGES else array
        np.testing.assert_array_equal(twin_arrays[key], expected)

    ours = run(torch_model, arrays, torch.float64)
    theirs = keras_model(**twin_arrays, training=False)
    for expected, actual in zip(ours, theirs if isinstance(theirs, tuple) else (theirs,), strict=True):
        actual = keras.ops.convert_to_numpy(actual)
        assert actual.dtype == np.float64
        atol = TWIN_TOLERANCES[name] * expected.abs().max().item()
        np.testing.assert_allclose(actual, expected.numpy(), rtol=0, atol=atol)


@pytest.mark.parametrize("name", TWIN_TOLERANCES)
def test_keras_twin_is_seeded_and_nowhere_constant(name: str) -> None:
    zoo = import_module(f"porter.zoo.keras.{name}")
    first, second = zoo.make(small=True).weights, zoo.make(small=True).weights
    for left, right in zip(first, second, strict=True):
        np.testing.assert_array_equal(left.numpy(), right.numpy())
        assert left.numpy().std() > 0, left.path


@pytest.mark.parametrize("name", TWIN_TOLERANCES)
def test_keras_twin_takes_any_size_of_its_dynamic_axes(name: str) -> None:
    """In graph mode, where a size that was wrongly fixed while tracing shows."""
    import tensorflow as tf

    zoo = import_module(f"porter.zoo.keras.{name}")
    model, arrays = zoo.make(small=True), zoo.inputs(small=True)
    signature = [
        tf.TensorSpec([None if axis in zoo.DYNAMIC[key] else n for axis, n in enumerate(array.shape)], array.dtype)
        for key, array in arrays.items()
    ]
    traced = tf.function(lambda *values: model(*values, training=False), input_signature=signature)
    cut = {
        key: array[:1, : 5 if 1 in zoo.DYNAMIC[key] else None]
        for key, array in zoo.inputs(small=True, batch=3, seed=1).items()
    }
    eager = model(**cut, training=False)
    graph = traced(*cut.values())
    for expected, actual in zip(tf.nest.flatten(eager), tf.nest.flatten(graph), strict=True):
        np.testing.assert_allclose(actual.numpy(), expected.numpy(), atol=1e-5)
