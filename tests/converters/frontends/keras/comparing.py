"""Runs a Keras model and the structured ONNX made of it side by side, both in float64."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import keras
import numpy as np
import onnx_ir as ir
import tensorflow as tf

from porter.converters.frontends.evaluate import KERNELS
from porter.converters.frontends.keras import to_onnx
from porter.runners.keras_forms import keras_precision
from tests.converters.frontends.keras.cases import OPEN, Row
from tests.converters.frontends.torch.comparing import evaluator

# ONNX's own convolutions and pools take most of the time of these tests.
REPLACED = [op_type for op_type in KERNELS if op_type not in ("Gemm", "GatherElements", "ScatterElements")]


@contextmanager
def in_float64() -> Iterator[None]:
    """Keras makes and runs everything in float64."""
    with keras_precision("float64"):
        yield


def seeded(model: Any) -> Any:
    """The model with weights that no default could stand for."""
    rng = np.random.default_rng(3)
    for variable in model.weights:
        if keras.backend.is_float_dtype(variable.dtype):
            fresh = rng.uniform(-0.5, 0.7, variable.shape)
            variable.assign(abs(fresh) + 0.5 if "variance" in variable.path else fresh)
    return model


def model_of(row: Row) -> keras.Model:
    """A functional model of one row."""
    inputs = [keras.Input(spec.shape, dtype=spec.dtype, name=f"x{position}") for position, spec in enumerate(row.specs)]
    return seeded(keras.Model(inputs, row.outputs(row.make(), inputs)))


def answers(model: Any, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """What Keras gives for flat inputs, flat."""
    inputs = [keras.ops.convert_to_tensor(array) for array in arrays]
    try:
        outputs = model(inputs, training=False)
    except tf.errors.OpError:  # no kernel for this processor: XLA has some
        outputs = tf.function(lambda: model(inputs, training=False), jit_compile=True)()
    return [np.asarray(leaf) for leaf in keras.tree.flatten(outputs)]


def compare_row(row: Row) -> ir.Model:
    """Port the row's model to ONNX and compare, at batch and other sizes that the tracer never saw."""
    with in_float64():
        model = model_of(row)
        graph = to_onnx(model, None).model
        run = evaluator(graph, REPLACED)
        for trial, (batch, size) in enumerate(zip((1, 3, 5), OPEN, strict=True)):
            rng = np.random.default_rng(trial)
            arrays = [spec.draw(batch, size, rng) for spec in row.specs]
            feeds = dict(zip(run.input_names, arrays, strict=True))
            got = [np.asarray(output) for output in run.run(None, feeds)]
            assert_same(got, answers(model, arrays), row.rtol)
    return graph


def assert_same(got: Sequence[np.ndarray], expected: Sequence[np.ndarray], rtol: float) -> None:
    """Equal numbers, shapes, and kinds of types."""
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected, strict=True):
        assert ours.shape == theirs.shape and ours.dtype.kind == theirs.dtype.kind, (ours.shape, theirs.shape)
        if theirs.dtype.kind in "fc":
            finite = np.abs(theirs[np.isfinite(theirs)])
            np.testing.assert_allclose(ours, theirs, rtol=rtol, atol=rtol * float(finite.max(initial=1e-30)))
        else:
            np.testing.assert_array_equal(ours, theirs)
