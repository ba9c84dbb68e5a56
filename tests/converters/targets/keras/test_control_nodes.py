"""`If`, `Loop` and `Scan` as ONNX defines them, its own test data included."""

from __future__ import annotations

from typing import Any

import numpy as np
import onnx
import pytest
from onnx.backend.test.loader import load_model_tests

from porter.errors import UnsupportedError
from tests.converters.targets.keras.models import check_model, flat, model_of
from tests.converters.targets.keras.nodes import ported

RNG = np.random.default_rng(5)
TRUE, FALSE = np.array(True), np.array(False)

# ONNX's own cases, and why some cannot be: a port takes and gives tensors.
REFUSED = {
    "test_loop13_seq": "takes a sequence",
    "test_loop16_seq_none": "takes an optional sequence",
    "test_if_opt": "gives an optional sequence",
    "test_sequence_insert_at_back": "takes a sequence",
    "test_sequence_insert_at_front": "takes a sequence",
    "test_split_to_sequence_1": "the number of pieces is an input",
}
CASES = [
    "test_if", "test_if_seq", "test_loop11", "test_scan9_sum", "test_scan9_multi_state", "test_scan9_scalar",
    "test_split_to_sequence_2", "test_split_to_sequence_nokeepdims", *REFUSED,
]  # fmt: skip


def normal(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape)


def number(value: int) -> np.ndarray:
    return np.array(value, np.int64)


@pytest.fixture(scope="module")
def published() -> dict[str, Any]:
    """ONNX's own cases by name; `test_scan_sum` among them is of an opset with another Scan."""
    return {case.name: case for case in load_model_tests(kind="node")}


@pytest.mark.parametrize("name", CASES)
def test_published_cases(published: dict[str, Any], name: str) -> None:
    case = published[name]
    model = onnx.version_converter.convert_version(case.model, 23)
    if name in REFUSED:
        with pytest.raises(UnsupportedError):
            ported(model)
        return
    port, generated = ported(model)
    for inputs, outputs in case.data_sets:
        found = flat(port(*(np.asarray(array) for array in inputs)))
        for got, wanted in zip(found, flat(outputs), strict=True):
            np.testing.assert_array_equal(got, wanted, err_msg=generated.source)


# ***** If *****

NESTED = """g (float[b,4] x, bool p, bool q) => (y, n) {
  s = ReduceSum <keepdims=0> (x)
  y, n = If (p) <
    then_branch = t () => (y1, n1) {
      two = Constant <value_float=2.0> ()
      y1, n1 = If (q) <
        then_branch = tt () => (y2, n2) { y2 = Mul (x, two) n2 = Constant <value_int=1> () },
        else_branch = te () => (y3, n3) { y3 = Add (x, s) n3 = Constant <value_int=2> () }>
    },
    else_branch = e () => (y4, n4) { y4 = Identity (x) n4 = Constant <value_int=3> () }>
}"""


@pytest.mark.parametrize("q", [TRUE, FALSE])
@pytest.mark.parametrize("p", [TRUE, FALSE])
@pytest.mark.usefixtures("keras_double")
def test_branches_in_branches(p: np.ndarray, q: np.ndarray) -> None:
    check_model(NESTED, (normal(3, 4), p, q), (normal(2, 4), p, q))


@pytest.mark.usefixtures("keras_double")
def test_a_known_branch_is_taken_while_porting() -> None:
    source = check_model(
        """g (float[b,4] x) => (y) {
          p = Constant <value = bool {0}> ()
          y = If (p) <then_branch = t () => (a) { a = Neg (x) }, else_branch = e () => (c) { c = Exp (x) }>
        }""",
        (normal(3, 4),),
    )
    assert "return ops.exp(x)" in source


@pytest.mark.usefixtures("keras_double")
def test_a_condition_of_one_element() -> None:
    check_model(
        """g (float[b,4] x, bool[1] p) => (y) {
          y = If (p) <then_branch = t () => (a) { a = Neg (x) }, else_branch = e () => (c) { c = Exp (x) }>
        }""",
        (normal(3, 4), np.array([True])),
        (normal(3, 4), np.array([False])),
    )


@pytest.mark.usefixtures("keras_double")
def test_branches_of_different_shapes() -> None:
    """What comes after knows no more of the shape than both have in common."""
    check_model(
        """g (float[b,4] x, bool p) => (z) {
          y = If (p) <then_branch = t () => (a) { a = Neg (x) },
                      else_branch = e () => (c) { ax = Constant <value_ints=[0]> () c = ReduceSum (x, ax) }>
          z = Add (y, x)
        }""",
        (normal(3, 4), TRUE),
        (normal(3, 4), FALSE),
    )


@pytest.mark.usefixtures("keras_double")
def test_parameters_that_a_branch_captures() -> None:
    """A product's weight, transposed in the branch, is a layer's; one that two branches share is one variable."""
    w = ",".join(str(step / 8) for step in range(-10, 10))
    source = check_model(
        f"""g (float[b,5] x, bool p) => (y) <float[4,5] w = {{{w}}}> {{
          y = If (p) <then_branch = t () => (a) {{ wt = Transpose <perm=[1,0]> (w) a = MatMul (x, wt) }},
                      else_branch = e () => (c) {{ wu = Transpose <perm=[1,0]> (w) r = Relu (x) c = MatMul (r, wu) }}>
        }}""",
        (normal(3, 5), TRUE),
        (normal(3, 5), FALSE),
        weights=["w"],
    )
    assert source.count("layers.Dense(") == 1


@pytest.mark.parametrize("p", [TRUE, FALSE])
@pytest.mark.usefixtures("keras_double")
def test_a_branch_gives_a_parameter_as_it_is(p: np.ndarray) -> None:
    w = ",".join(str(step / 8) for step in range(12))
    source = check_model(
        f"""g (float[3,4] x, bool p) => (y, k) <float[3,4] w = {{{w}}}> {{
          y = If (p) <then_branch = t () => (a) {{ a = Identity (w) }},
                      else_branch = e () => (c) {{ c = Add (x, w) }}>
          k = Constant <value_int=3> ()
        }}""",
        (normal(3, 4), p),
        weights=["w"],
    )
    assert "ops.convert_to_tensor(self.w)" in source


def test_operators_without_a_rule_are_found_in_branches_and_loops() -> None:
    text = """g (float[b,4,4] x, bool p, int64 m) => (y, z) {
      y = If (p) <then_branch = t () => (a) { a = Det (x) }, else_branch = e () => (c) { c = ReduceSum (x) }>
      z = Loop (m, "", x) <body = turn (int64 i, bool go, float[b,4,4] h) => (more, h1) {
        more = Identity (go)
        h1 = Mystery <domain = "own"> (h)
      }>
    }"""
    model = model_of(text.replace('Mystery <domain = "own">', "own.Mystery"))
    with pytest.raises(UnsupportedError) as caught:
        ported(model)
    assert "own::Mystery (1x)" in str(caught.value)


# ***** Loop *****

LOOP = """g (float[b,4] x, int64 m, bool c) => (y, ys, i) {
  zero = Constant <value_int=0> ()
  y, i, ys = Loop (%s, %s, x, zero) <body = turn (int64 n, bool go, float[b,4] h, int64 k) => (more, h2, k2, r) {
    half = Constant <value_float=0.5> ()
    f = Cast <to=1> (n)
    g = Mul (h, half)
    h2 = Add (g, f)
    one = Constant <value_int=1> ()
    k2 = Add (k, one)
    r = ReduceSum <keepdims=0> (h2)
    four = Constant <value_float=4.0> ()
    %s
  }>
}"""


def by_hand(
    x: np.ndarray, turns: int | None, first: bool, limit: float | None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The loop in Python, as the standard describes it."""
    given, n, go = [], 0, first
    while go and (turns is None or n < turns):
        x = x * 0.5 + n
        given.append(x.sum())
        go = limit is None or bool(given[-1] < limit)
        n += 1
    return x, np.array(given).reshape(-1), number(n)


KINDS = {
    "counted": ("m", '""', "more = Identity (go)"),
    "asked": ('""', "c", "more = Less (r, four)"),
    "both": ("m", "c", "more = Less (r, four)"),
    "first": ("m", "c", "more = Identity (go)"),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.usefixtures("keras_double")
def test_loops_end_by_number_or_condition(kind: str) -> None:
    """No turn, one and several, with results of each turn: none of them is a tensor of no rows."""
    text = LOOP % KINDS[kind]
    limit = 4.0 if "Less" in text else None
    cases = []
    for turns, first in ((0, True), (1, True), (5, True), (5, False)):
        x = normal(3, 4)
        asked = True if kind == "counted" else first
        cases.append(
            ((x, number(turns), np.array(first)), by_hand(x, None if kind == "asked" else turns, asked, limit))
        )
    check_model(text, *cases)


@pytest.mark.usefixtures("keras_double")
def test_a_loop_of_a_known_number_of_turns() -> None:
    text = LOOP.replace("zero =", "four = Constant <value_int=4> ()\n  zero =") % ("four", '""', "more = Identity (go)")
    x = normal(3, 4)
    source = check_model(text, ((x, number(9), TRUE), by_hand(x, 4, True, None)))
    assert "while_loop" not in source


@pytest.mark.usefixtures("keras_double")
def test_a_condition_is_the_function_that_it_is_in_the_source() -> None:
    """Exporters write the condition twice, before the loop and in it; a number known before is folded away."""
    source = check_model(
        """g (float[b,4] x) => (y) {
          zero = Constant <value_int=0> ()
          five = Constant <value_int=5> ()
          small = Constant <value_float=50.0> ()
          s0 = ReduceSum <keepdims=0> (x)
          a0 = Less (zero, five)
          b0 = Less (s0, small)
          c0 = And (a0, b0)
          i, y = Loop ("", c0, zero, x) <body = turn (int64 n, bool go, int64 k, float[b,4] h) => (c1, k1, h1) {
            one = Constant <value_int=1> ()
            two = Constant <value_float=2.0> ()
            k1 = Add (k, one)
            h1 = Mul (h, two)
            s1 = ReduceSum <keepdims=0> (h1)
            a1 = Less (k1, five)
            b1 = Less (s1, small)
            c1 = And (a1, b1)
          }>
        }""",
        (np.abs(normal(3, 4)),),
        (np.abs(normal(2, 4)) * 99,),
        (np.abs(normal(2, 4)) * 1e-3,),
    )
    assert "        def condition(x, y):" in source and "ops.while_loop(condition, " in source


GROWS = """g (float[n] x, int64 m) => (y) {
  c = Constant <value = bool {1}> ()
  y = Loop (m, c, x) <body = turn (int64 i, bool ci, h) => (co, h2) {
    co = Identity (ci)
    s = ReduceSum <keepdims=1> (h)
    h2 = Concat <axis=0> (h, s)
  }>
}"""


@pytest.mark.usefixtures("keras_double")
def test_what_a_loop_carries_may_grow() -> None:
    source = check_model(GROWS, (normal(3), number(5)), (normal(2), number(0)), (normal(1), number(1)))
    assert "shape_invariants" in source


@pytest.mark.usefixtures("keras_double")
def test_a_loop_that_never_ends_is_refused() -> None:
    text = LOOP.replace("int64 m, bool c", "int64 m") % ('""', '""', "more = Identity (go)")
    with pytest.raises(UnsupportedError, match="never ends"):
        check_model(text, (normal(3, 4), number(1)))


# ***** Scan *****


@pytest.mark.parametrize("directions", [(0, 0), (1, 1)])
@pytest.mark.parametrize("axes", [(0, 0), (1, 1), (-1, 0), (2, -1)])
@pytest.mark.usefixtures("keras_double")
def test_scan_axes_and_directions(axes: tuple[int, int], directions: tuple[int, int]) -> None:
    into, out = axes
    x, size = normal(3, 4, 5), [s for a, s in enumerate((3, 4, 5)) if a != into % 3]
    text = f"""g (float[{",".join(map(str, size))}] h0, float[3,4,5] x) => (h, ys) {{
      h, ys = Scan <num_scan_inputs=1, scan_input_axes=[{into}], scan_output_axes=[{out}],
                    scan_input_directions=[{directions[0]}], scan_output_directions=[{directions[1]}],
                    body = turn (float[{",".join(map(str, size))}] a, float[{",".join(map(str, size))}] b) => (c, d) {{
        half = Constant <value_float=0.5> ()
        e = Mul (a, half)
        c = Add (e, b)
        d = Neg (c)
      }}> (h0, x)
    }}"""
    h = h0 = normal(*size)
    rows = []
    for row in np.moveaxis(x, into, 0)[:: -1 if directions[0] else 1]:
        h = h * 0.5 + row
        rows.append(-h)
    ys = np.moveaxis(np.stack(rows[:: -1 if directions[1] else 1]), 0, out)
    check_model(text, ((h0, x), (h, ys)))


@pytest.mark.usefixtures("keras_double")
def test_scans_in_two_directions_are_refused() -> None:
    text = """g (float[4] h0, float[3,4] x) => (h, ys) {
      h, ys = Scan <num_scan_inputs=1, scan_input_directions=[1], scan_output_directions=[0],
                    body = turn (float[4] a, float[4] b) => (c, d) { c = Add (a, b) d = Neg (c) }> (h0, x)
    }"""
    with pytest.raises(UnsupportedError, match="some backwards"):
        check_model(text, (normal(4), normal(3, 4)))
