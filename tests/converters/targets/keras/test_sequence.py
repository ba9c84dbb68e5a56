"""Sequences of tensors: as ONNX defines them, as the tensors that they are made of."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

from porter.converters.opset import OPSET
from porter.errors import UnsupportedError
from tests.converters.targets.keras.models import check_model, flat, model_of
from tests.converters.targets.keras.nodes import ported

pytestmark = pytest.mark.usefixtures("keras_double")
RNG = np.random.default_rng(6)
TRUE, FALSE = np.array(True), np.array(False)


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def number(value: int) -> np.ndarray:
    return np.array(value, np.int64)


def rows(text: str, inputs: str = "float[b,4] x, float[b,4] u", outputs: str = "y") -> str:
    """A graph of these statements, with numbers to count with."""
    numbers = "\n".join(
        f"  {n} = Constant <value_int={v}> ()" for n, v in zip(("zero", "one", "two"), range(3), strict=True)
    )
    return f"g ({inputs}) => ({outputs}) {{\n{numbers}\n  last = Constant <value_int=-1> ()\n{text}\n}}"


# ***** lists of known structure *****

LISTS = {
    "at": "s = SequenceConstruct (x, u) y = SequenceAt (s, last)",
    "insert": "s = SequenceConstruct (x, u) t = SequenceInsert (s, u, zero) y = ConcatFromSequence <axis=1> (t)",
    "insert before the last": """s = SequenceConstruct (x, u) z = Neg (x) t = SequenceInsert (s, z, last)
                                 y = ConcatFromSequence <axis=-1> (t)""",
    "insert at the end": """s = SequenceEmpty () t = SequenceInsert (s, u) v = SequenceInsert (t, x)
                            y = SequenceAt (v, one)""",
    "erase": "s = SequenceConstruct (x, u, x) t = SequenceErase (s, zero) y = ConcatFromSequence <axis=0> (t)",
    "erase the last": "s = SequenceConstruct (x, u, x) t = SequenceErase (s) y = ConcatFromSequence <axis=0> (t)",
    "new axis": "s = SequenceConstruct (x, u, x) y = ConcatFromSequence <axis=1, new_axis=1> (s)",
    "new last axis": "s = SequenceConstruct (x, u) y = ConcatFromSequence <axis=-1, new_axis=1> (s)",
    "one tensor": "s = SequenceConstruct (x) y = ConcatFromSequence <axis=0> (s)",
    "length": "s = SequenceConstruct (x, u, x) n = SequenceLength (s) f = Cast <to=1> (n) y = Mul (x, f)",
    "copies": "s = SequenceConstruct (x, u) t = Identity (s) y = SequenceAt (t, one)",
}


@pytest.mark.parametrize("name", LISTS)
def test_lists_dissolve(name: str) -> None:
    check_model(rows(LISTS[name]), (normal(3, 4), normal(3, 4)))


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("axis", [0, 1, -1])
def test_splits_into_single_slices(axis: int, keepdims: int) -> None:
    text = (
        f"s = SplitToSequence <axis={axis}, keepdims={keepdims}> (x) y = SequenceAt (s, two) z = SequenceAt (s, last)"
    )
    check_model(rows(text, "float[3,4] x", "y, z"), (normal(3, 4),))


@pytest.mark.parametrize("split", ["value_int=2", "value_int=3", "value_ints=[1,3]", "value_ints=[4]"])
def test_splits_of_given_sizes(split: str) -> None:
    text = (
        f"k = Constant <{split}> () s = SplitToSequence <axis=1> (x, k) y = SequenceAt (s, zero) n = SequenceLength (s)"
    )
    check_model(rows(text, "float[b,4] x", "y, n"), (normal(3, 4),))


@pytest.mark.parametrize("keepdims", [0, 1])
@pytest.mark.parametrize("size", ["6", "n"])
def test_a_slice_chosen_at_run_time_is_read_by_index(size: str, keepdims: int) -> None:
    text = f"s = SplitToSequence <axis=0, keepdims={keepdims}> (x) y = SequenceAt (s, i) n = SequenceLength (s)"
    source = check_model(
        rows(text, f"float[{size},4] x, int64 i", "y, n"), (normal(6, 4), number(2)), (normal(6, 4), number(5))
    )
    assert "ops.split" not in source


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 1), (1, 1), (0, 0)])
def test_slices_of_unknown_number_are_joined_again(axis: int, new_axis: int) -> None:
    text = f"s = SplitToSequence <axis=1, keepdims=0> (x) y = ConcatFromSequence <axis={axis}, new_axis={new_axis}> (s)"
    check_model(rows(text, "float[b,n] x"), (normal(3, 4),), (normal(2, 1),))


def test_a_tensor_of_a_list_is_chosen_at_run_time() -> None:
    text = "z = Neg (x) s = SequenceConstruct (x, u, z) y = SequenceAt (s, i)"
    check_model(
        rows(text, "float[b,4] x, float[b,4] u, int64 i"),
        (normal(3, 4), normal(3, 4), number(0)),
        (normal(3, 4), normal(3, 4), number(2)),
    )


def test_a_list_is_returned_as_its_tensors() -> None:
    source = check_model(
        rows("k = Constant <value_int=2> () s = SplitToSequence <axis=1> (x, k)", "float[b,5] x", "s"), (normal(3, 5),)
    )
    assert "return x, y, z" in source


def test_branches_give_lists() -> None:
    text = """
      s = If (p) <then_branch = t () => (a) { a = SequenceConstruct (x, x) },
                  else_branch = e () => (c) { d = Neg (x) e1 = SequenceEmpty () e2 = SequenceInsert (e1, d)
                                              c = SequenceInsert (e2, x) }>
      y = SequenceAt (s, zero)
      z = ConcatFromSequence <axis=1> (s)"""
    check_model(rows(text, "float[b,4] x, bool p", "y, z"), (normal(3, 4), TRUE), (normal(3, 4), FALSE))


# ***** loops over lists *****

GATHERING = """
  c = Constant <value = bool {1}> ()
  e = SequenceEmpty <dtype=1> ()
  h, s = Loop (m, c, x, e) <body = turn (int64 i, bool ci, float[b,4] h0, seq(float[b,4]) s0) => (co, h1, s1) {
    co = Identity (ci)
    half = Constant <value_float=0.5> ()
    h1 = Mul (h0, half)
    s1 = SequenceInsert (s0, h1)
  }>
  n = SequenceLength (s)
"""


@pytest.mark.parametrize(("axis", "new_axis"), [(0, 1), (1, 1), (2, 1), (-1, 1), (0, 0), (1, 0), (-1, 0)])
def test_what_a_loop_gathers_is_stacked(axis: int, new_axis: int) -> None:
    text = GATHERING + f"y = ConcatFromSequence <axis={axis}, new_axis={new_axis}> (s)"
    source = check_model(
        rows(text, "float[b,4] x, int64 m", "h, y, n"), (normal(3, 4), number(5)), (normal(2, 4), number(1))
    )
    assert "while_loop_results(" in source


def test_what_a_loop_gathers_is_read_by_index() -> None:
    text = GATHERING + "y = SequenceAt (s, last) z = SequenceAt (s, one)"
    check_model(rows(text, "float[b,4] x, int64 m", "h, y, z"), (normal(3, 4), number(5)), (normal(2, 4), number(2)))


def test_a_loop_walks_over_the_slices_of_a_tensor() -> None:
    """What TorchScript writes for `for row in x:`."""
    text = """
      s = SplitToSequence <axis=0, keepdims=0> (x)
      m = SequenceLength (s)
      c = Constant <value = bool {1}> ()
      z = Constant <value = float[4] {0.0, 0.0, 0.0, 0.0}> ()
      e = SequenceEmpty <dtype=1> ()
      h, o = Loop (m, c, z, e) <body = turn (int64 i, bool ci, float[4] h0, seq(float) s0) => (co, h1, s1) {
        co = Constant <value = bool {1}> ()
        row = SequenceAt (s, i)
        sum = Add (h0, row)
        h1 = Tanh (sum)
        s1 = SequenceInsert (s0, h1)
      }>
      y = ConcatFromSequence <axis=0, new_axis=1> (o)"""
    source = check_model(rows(text, "float[n,4] x", "y, h"), (normal(5, 4),), (normal(1, 4),))
    assert "ops.scan(" in source


def test_lists_of_a_fixed_length_are_carried() -> None:
    text = """
      c = Constant <value = bool {1}> ()
      s = SequenceConstruct (x, u)
      t = Loop (m, c, s) <body = turn (int64 i, bool ci, seq(float[b,4]) s0) => (co, s2) {
        co = Identity (ci)
        a = SequenceAt (s0, zero)
        d = SequenceAt (s0, one)
        e = Add (a, d)
        s1 = SequenceErase (s0, zero)
        s2 = SequenceInsert (s1, e)
      }>
      y = SequenceAt (t, zero)
      z = SequenceAt (t, one)"""
    cases = [(normal(3, 4), normal(3, 4), number(turns)) for turns in (0, 1, 6)]
    source = check_model(rows(text, "float[b,4] x, float[b,4] u, int64 m", "y, z"), *cases)
    assert " = state\n" in source


WRITTEN = """
  m = Constant <value_int=3> ()
  c = Constant <value = bool {1}> ()
  e = SequenceEmpty <dtype=1> ()
  s = Loop (m, c, e) <body = turn (int64 i, bool ci, seq(float) s0) => (co, s1) {
    co = Constant <value = bool {1}> ()
    at = Constant <value_ints=[1]> ()
    i1 = Reshape (i, at)
    stop = Add (i1, at)
    start = Constant <value_ints=[0]> ()
    part = Slice (x, start, stop, at)
    s1 = SequenceInsert (s0, part)
  }>
"""


def test_few_turns_with_lists_are_written_out() -> None:
    """Slices of growing length are no tensor."""
    source = check_model(rows(WRITTEN, "float[b,4] x", "s"), (normal(3, 4),))
    assert "x[:, :1]" in source and "x[:, :3]" in source


# ***** what cannot be had *****

REFUSED = {
    "lists of different lengths": (
        """s = If (p) <then_branch = t () => (a) { a = SequenceConstruct (x, x) },
                       else_branch = e () => (c) { c = SequenceConstruct (x) }>
           y = ConcatFromSequence <axis=1> (s)""",
        "ConcatFromSequence .*: the length of the sequence is known at run time only",
    ),
    "a place that is computed": (
        "s = SequenceConstruct (x, x) t = SequenceErase (s, i) y = ConcatFromSequence <axis=1> (t)",
        "SequenceErase .*: the length of the sequence or the place in it",
    ),
    "a choice between shapes": (
        "w = Transpose <perm=[1,0]> (x) s = SequenceConstruct (x, w) y = SequenceAt (s, i)",
        "SequenceAt .*: which tensor of the sequence it takes",
    ),
    "a computed number of pieces": (
        "s = SplitToSequence <axis=0> (x, i) y = SequenceAt (s, zero)",
        "SplitToSequence .*: the number of pieces",
    ),
    "a loop that gathers other shapes": (
        WRITTEN.replace("m = Constant <value_int=3> ()", "m = Identity (i)") + "y = ConcatFromSequence <axis=1> (s)",
        "Loop .*: .*it carries a sequence of tensors whose number or shapes",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_other_sequences_are_refused_with_a_reason(name: str) -> None:
    text, reason = REFUSED[name]
    with pytest.raises(UnsupportedError, match=reason):
        ported(model_of(rows(text, "float[3,4] x, bool p, int64 i")))


@pytest.mark.parametrize("index", range(1, 9))
def test_published_models(index: int) -> None:
    """ONNX's own models of sequences."""
    folder = next(Path(c.model_dir) for c in load_model_tests(kind="simple") if c.name == f"test_sequence_model{index}")
    model = onnx.version_converter.convert_version(onnx.load(folder / "model.onnx"), OPSET)
    port, generated = ported(model)
    sets = sorted(folder.glob("test_data_set_*"))
    assert sets
    for data in sets:
        inputs, outputs = (
            [numpy_helper.to_array(onnx.load_tensor(file)) for file in sorted(data.glob(f"{kind}_*.pb"))]
            for kind in ("input", "output")
        )
        for got, wanted in zip(flat(port(*inputs)), outputs, strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=generated.source)
