"""The kernels of the check against ONNX's own node tests."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.backend.test.loader import load_model_tests

from porter.converters.frontends.evaluate import evaluate_node
from porter.converters.frontends.kernels import KERNELS
from porter.converters.opset import OPSET


def _node_tests() -> list:
    found = []
    for case in load_model_tests(kind="node"):
        if case.model is None or not case.data_sets or len(case.model.graph.node) != 1:
            continue
        versions = {entry.domain: entry.version for entry in case.model.opset_import}
        if case.model.graph.node[0].op_type in KERNELS and 13 <= versions.get("", 0) <= OPSET + 2:
            found.append(pytest.param(case.model, *case.data_sets[0], id=case.name))
    return found


@pytest.mark.parametrize(("proto", "given", "wanted"), _node_tests())
def test_node(proto: onnx.ModelProto, given: list, wanted: list) -> None:
    node = next(iter(ir.serde.deserialize_model(proto).graph))
    if any(array.dtype.kind not in "fiu" for array in given):
        pytest.skip("strings")
    feeds = dict(zip((value.name for value in proto.graph.input), given, strict=True))
    inputs = [None if value is None else feeds[value.name] for value in node.inputs]
    try:
        made = evaluate_node(node, inputs)
    except (KeyError, NotImplementedError):
        pytest.skip("a form that torch's operators do not give")
    named = [output for output, value in zip(made, node.outputs, strict=False) if value.name]
    for got, want in zip(named, wanted, strict=False):  # statistics of a norm are left out
        assert got.shape == want.shape
        np.testing.assert_allclose(got, want, rtol=1e-3, atol=1e-5)
