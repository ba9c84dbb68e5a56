"""Every torch model of the zoo through the front end, at batch sizes that the tracer never saw."""

from __future__ import annotations

import onnx_ir as ir
import pytest

from porter.converters.opset import KIND, SCOPE, TRAINABLE
from porter.zoo import catalog
from tests.converters.frontends.torch.comparing import compare, graph_of


@pytest.mark.parametrize("entry", catalog.originals("torch"), ids=lambda entry: entry.name)
def test_equal_to_torch(entry: catalog.Entry) -> None:
    others = [entry.inputs(small=True, batch=batch, seed=batch) for batch in (1, 3, 5)]
    compare(entry.make(small=True), entry.inputs(small=True), *others, dynamic=entry.dynamic)


def _parameters(graph: ir.Model) -> dict[str, ir.Value]:
    found = graph.graph.initializers
    return {name: value for name, value in found.items() if value.metadata_props[KIND] == "parameter"}


@pytest.mark.parametrize("name", ["resnet18", "bert_tiny"])
def test_parameters_keep_their_names(name: str) -> None:
    entry = catalog.find(name)
    model = entry.make(small=True)
    graph = graph_of(model, entry.inputs(small=True), entry.dynamic)
    assert set(_parameters(graph)) <= dict(model.named_parameters()).keys()
    assert all(SCOPE in node.metadata_props for node in graph.graph)


def test_tied_weights_are_one_initializer() -> None:
    entry = catalog.find("gru_lm")
    model = entry.make(small=True)
    graph = graph_of(model, entry.inputs(small=True), entry.dynamic)
    assert "embedding.weight" in _parameters(graph) and "head.weight" not in graph.graph.initializers


def test_frozen_parameters_are_told_apart() -> None:
    entry = catalog.find("lenet")
    model = entry.make(small=True)
    first, *rest = dict(model.named_parameters())
    model.get_parameter(first).requires_grad_(False)
    parameters = _parameters(graph_of(model, entry.inputs(small=True), entry.dynamic))
    assert parameters[first].metadata_props[TRAINABLE] == "0"
    assert {parameters[name].metadata_props[TRAINABLE] for name in rest} == {"1"}
