"""Attention with caches, scores, precisions and unknown sizes, as ONNX defines it; its own data included."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.loader import load_model_tests
from onnx.reference.ops.op_attention import _compute_attention

from porter.converters.opset import OPSET
from tests.converters.targets.keras.nodes import Case, check, ported

# (batch, query heads, key heads, queries, keys, depth, depth of values): plain, grouped, shared, and all sizes equal.
SIZES = [(2, 3, 3, 4, 6, 8, 5), (2, 6, 3, 5, 4, 8, 8), (3, 4, 1, 2, 7, 5, 3), (2, 2, 2, 2, 2, 2, 2)]
TOLERANCE = {np.dtype(np.float32): 1e-5, np.dtype(np.float16): 2e-3}


def case(sizes: tuple[int, ...] = SIZES[0], past: int = 0, mask: Any = None, rank: int = 4, **attributes: Any) -> Case:
    """All four results; `past` steps of a cache; a mask of the given axes of (batch, heads, queries, keys)."""
    batch, heads, shared, queries, keys, depth, width = sizes
    rng = np.random.default_rng(3)

    def drawn(count: int, time: int, size: int) -> np.ndarray:
        shape = (batch, count, time, size) if rank == 4 else (batch, time, count * size)
        return rng.standard_normal(shape)

    inputs: dict[str, np.ndarray | None] = {
        "q": drawn(heads, queries, depth),
        "k": drawn(shared, keys, depth),
        "v": drawn(shared, keys, width),
    }
    whole = rng.standard_normal((batch, heads, queries, past + keys))
    picked = tuple(slice(None) if axis in (mask or "") else slice(1) for axis in "bhqk")
    inputs["mask"] = None if mask is None else whole[picked] > -0.5 if "!" in mask else whole[picked]
    if past:
        inputs["past_key"] = rng.standard_normal((batch, shared, past, depth))
        inputs["past_value"] = rng.standard_normal((batch, shared, past, width))
    if rank == 3:
        attributes |= {"q_num_heads": heads, "kv_num_heads": shared}
    return Case("Attention", inputs, attributes, outputs=4, known=(-1,) if rank == 3 else (1, -1))


def results(given: Case) -> list[np.ndarray]:
    """Those of ONNX's reference, whose attributes are float64 here as its data are."""
    names = {"q": "Q", "k": "K", "v": "V", "mask": "attn_mask"}
    operands = {names.get(name, name): array for name, array in given.inputs.items()}
    if operands["attn_mask"] is not None:  # it takes the queries of a causal mask to be as many as those of this one
        queries, keys = (given.inputs[name].shape[-2] for name in "qk")  # type: ignore[union-attr]
        past = given.inputs.get("past_key")
        mask, whole = operands["attn_mask"], (queries, keys + (0 if past is None else past.shape[2]))
        operands["attn_mask"] = np.array(np.broadcast_to(mask, (*mask.shape[:2], *whole)))
    found = _compute_attention(**operands, **{"qk_matmul_output_mode": 0, **given.attributes})
    return list(found)[: given.outputs]


def confirm(given: Case, right: list[np.ndarray] | None = None) -> None:
    check(given, right=right or results(given), rtol=1e-10)


@pytest.mark.usefixtures("keras_double")
@pytest.mark.parametrize("sizes", SIZES)
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("causal", [0, 1])
def test_caches(sizes: tuple[int, ...], rank: int, past: int, causal: int) -> None:
    confirm(case(sizes, past, rank=rank, is_causal=causal))


@pytest.mark.usefixtures("keras_double")
@pytest.mark.parametrize("mode", [0, 1, 2, 3])
@pytest.mark.parametrize("mask", [None, "bhqk", "qk!", "bk!"])
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("softcap", [0.0, 1.5])
def test_scores(mode: int, mask: str | None, past: int, softcap: float) -> None:
    given = case(SIZES[1], past, mask, qk_matmul_output_mode=mode, softcap=softcap, is_causal=1, scale=0.375)
    right = None
    if softcap and not mode:  # the reference gives what is capped, where the text says "the output of qk matmul"
        plain = {key: value for key, value in given.attributes.items() if key != "softcap"}
        raw = results(replace(given, attributes=plain))
        right = [*results(given)[:3], raw[3]]
    confirm(given, right)


@pytest.mark.usefixtures("keras_double")
def test_queries_that_attend_to_nothing() -> None:
    given = case(mask="bqk!", qk_matmul_output_mode=3)
    assert given.inputs["mask"] is not None
    given.inputs["mask"][:, :, 1] = False
    confirm(given)


@pytest.mark.usefixtures("keras_double")
@pytest.mark.parametrize("rank", [3, 4])
@pytest.mark.parametrize("past", [0, 3])
@pytest.mark.parametrize("outputs", [1, 3])
def test_depths_that_vary(rank: int, past: int, outputs: int) -> None:
    given = case(SIZES[1], past, "qk", rank)
    given.known, given.outputs = (1,) if rank == 4 else (), outputs
    confirm(given)


@pytest.mark.parametrize(
    ("dtype", "precision"), [(np.float16, 1), (np.float16, 11), (np.float32, 11), (np.float32, 10)]
)
@pytest.mark.parametrize("mode", [0, 3])
def test_the_softmax_has_a_precision_of_its_own(dtype: type, precision: int, mode: int) -> None:
    given = case(mask="qk", softmax_precision=precision, qk_matmul_output_mode=mode)
    given.inputs = {name: None if array is None else array.astype(dtype) for name, array in given.inputs.items()}
    tolerance = TOLERANCE[np.dtype(dtype)] if precision != 10 else 2e-3
    source = check(given, rtol=tolerance, atol=tolerance)
    assert f'softmax_dtype="{ {1: "float32", 10: "float16", 11: "float64"}[precision] }"' in source


def test_published_cases() -> None:
    """All that ONNX publishes for this opset. Keras computes in its own type what comes in half precision."""
    cases = [
        each
        for each in load_model_tests(kind="node")
        if each.name.startswith("test_attention") and "expanded" not in each.name
    ]
    checked = 0
    for each in cases:
        model = each.model if each.model is not None else onnx.load(f"{each.model_dir}/model.onnx")
        if model.opset_import[0].version != OPSET:
            continue
        port, generated = ported(model)
        for inputs, outputs in each.data_sets:
            given = port(*(np.asarray(array) for array in inputs))
            found = [np.asarray(value) for value in (given if isinstance(given, list | tuple) else [given])]
            for got, wanted in zip(found, outputs, strict=True):
                tolerance = TOLERANCE.get(wanted.dtype, 2e-2)
                got, wanted = (array.astype(np.float64) for array in (got, wanted))
                np.testing.assert_allclose(
                    got, wanted, rtol=tolerance, atol=tolerance, err_msg=f"{each.name}\n{generated.source}"
                )
        checked += 1
    assert checked >= 60
