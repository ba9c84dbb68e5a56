"""The kernels of the check against ONNX's own node tests."""

from __future__ import annotations

import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx.backend.test.loader import load_model_tests

from porter.converters.frontends.torch.evaluate import evaluate_node
from porter.converters.frontends.torch.kernels import KERNELS
from porter.converters.opset import OPSET


def _node_tests() -> list:
    found = []
    for case in load_model_tests(kind="node"):
        proto = case.model if case.model is not None else onnx.load(f"{case.model_dir}/model.onnx")
        versions = {entry.domain: entry.version for entry in proto.opset_import}
        if len(proto.graph.node) == 1 and proto.graph.node[0].op_type in KERNELS and 13 <= versions.get("", 0) <= OPSET:
            found.append(pytest.param(case.model_dir, proto, id=case.name))
    return found


def _arrays(folder: str, kind: str, count: int) -> list[np.ndarray]:
    arrays = []
    for index in range(count):
        with open(f"{folder}/test_data_set_0/{kind}_{index}.pb", "rb") as file:
            arrays.append(onnx.numpy_helper.to_array(onnx.load_tensor(file)))
    return arrays


@pytest.mark.parametrize(("folder", "proto"), _node_tests())
def test_node(folder: str, proto: onnx.ModelProto) -> None:
    given = _arrays(folder, "input", len(proto.graph.input))
    wanted = _arrays(folder, "output", len(proto.graph.output))
    node = next(iter(ir.serde.deserialize_model(proto).graph))
    if len(wanted) > 1 or any(array.dtype.kind not in "fiu" for array in given):
        pytest.skip("several outputs")
    feeds = dict(zip((value.name for value in proto.graph.input), given, strict=True))
    inputs = [None if value is None else feeds[value.name] for value in node.inputs]
    try:
        got = evaluate_node(node, inputs)[0]
    except (KeyError, NotImplementedError):
        pytest.skip("a form that torch's operators do not give")
    assert got.shape == wanted[0].shape
    np.testing.assert_allclose(got, wanted[0], rtol=1e-3, atol=1e-5)
