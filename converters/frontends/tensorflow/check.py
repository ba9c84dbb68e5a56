"""The translation checked operator by operator, before any code is made of it.

The program runs in float64, and what each of its operators became in ONNX is evaluated on the true inputs of that
operator, so that an error shows where it arises and nowhere else. Operators that TensorFlow has for float32 alone are
compared in float32.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import onnx_ir as ir
import tensorflow as tf

from porter.converters.frontends.comparison import TOLERANCE, difference
from porter.converters.frontends.evaluate import evaluate_nodes
from porter.converters.frontends.tensorflow.double import Doubled, truth, widened
from porter.converters.frontends.tensorflow.functions import CALLS, REGIONS, Ref
from porter.converters.frontends.tensorflow.program import Program
from porter.converters.frontends.tensorflow.translate import Translation
from porter.converters.opset import ORIGIN
from porter.errors import ExportError, InputError

# Of an operator that TensorFlow computes in float32.
NARROW_TOLERANCE = 1e-4
# Which of several equal elements comes first is each framework's own choice.
_PICKING = {"TopKV2": 1, "TopK": 1}


def check(program: Program, translation: Translation, inputs: Mapping[str, np.ndarray]) -> None:
    """Compare every operator's translation with TensorFlow.

    Args:
        program: what was translated.
        translation: what `translate` made of it, before any other pass.
        inputs: arrays for the program's inputs.

    Raises:
        ExportError: naming the first operator whose translation differs.
        InputError: the program itself does not run on the inputs.
    """
    doubled = Doubled(program)
    refs = [ref for ref, _ in translation.holders if translation.graph.get_tensor_by_name(ref).dtype != tf.variant]
    refs = list(dict.fromkeys(refs))
    feeds = {each.tensor: np.asarray(inputs[each.name]) for each in program.inputs}
    try:
        arrays = doubled.run([truth(ref, doubled) for ref in refs], feeds)
    except tf.errors.OpError as error:
        raise InputError(f"{program.name} does not run on its inputs: {error.message}") from error
    _Check(program, translation, doubled, dict(zip(refs, map(as_real, arrays), strict=True))).run()


def as_real(array: np.ndarray) -> np.ndarray:
    """Complex numbers as real ones with a last axis (real, imaginary)."""
    array = widened(np.asarray(array))
    return np.stack([array.real, array.imag], axis=-1) if array.dtype.kind == "c" else array


class _Check:
    def __init__(
        self, program: Program, translation: Translation, doubled: Doubled, arrays: dict[Ref, np.ndarray]
    ) -> None:
        self.program = program
        self.narrow = doubled.narrow
        self.narrow_inside = doubled.narrow_inside
        self.graph = translation.graph
        self.arrays = arrays
        self.groups: dict[str, list[ir.Node]] = {}
        for node in translation.model.graph:
            self.groups.setdefault(node.metadata_props.get(ORIGIN, ""), []).append(node)
        self.results = {output.tensor for output in program.outputs}
        self.holders: dict[Ref, ir.Value] = dict(translation.holders)
        self.known: dict[ir.Value, np.ndarray] = {
            value: widened(value.const_value.numpy()) for value in translation.model.graph.initializers.values()
        }
        for each in program.inputs:
            self.known[self.holders[each.tensor]] = arrays[each.tensor]

    def run(self) -> None:
        for operation in self.graph.get_operations():
            evaluate_nodes(self.groups.get(operation.name, []), self.known)
            for tensor in operation.outputs:
                value = self.holders.get(tensor.name)
                read = bool(tensor.consumers()) or tensor.name in self.results
                if read and value is not None and tensor.name in self.arrays and value in self.known:
                    self._compare(operation, tensor.name, value)

    def _compare(self, operation: object, name: Ref, value: ir.Value) -> None:
        got, true = self.known[value], self.arrays[name]
        node = operation.node_def  # type: ignore[attr-defined]
        tolerance = (
            NARROW_TOLERANCE if node.name in self.narrow or (self.narrow_inside and _has_regions(node)) else TOLERANCE
        )
        problem = difference(got, true, "TensorFlow", tolerance)
        if problem and name.endswith(f":{_PICKING.get(node.op, -1)}"):
            source = self.arrays[operation.inputs[0].name]  # type: ignore[attr-defined]
            problem = difference(
                np.take_along_axis(source, got, -1), np.take_along_axis(source, true, -1), "TensorFlow", tolerance
            )
        if problem:
            raise ExportError(
                f"the ONNX translation of {node.op} ({node.name}) of {self.program.name} is not equal to TensorFlow "
                f"on the same inputs: {problem}. This is a fault of porter's translation of that operator; please "
                "report it with the model."
            )
        self.known[value] = true


def _has_regions(node: object) -> bool:
    return node.op in (*REGIONS, *CALLS)  # type: ignore[attr-defined]


def check_outputs(program: Program, model: ir.Model, inputs: Mapping[str, np.ndarray]) -> None:
    """Compare a whole graph with TensorFlow.

    Raises:
        ExportError: an output differs.
    """
    doubled = Doubled(program)
    feeds = {each.tensor: np.asarray(inputs[each.name]) for each in program.inputs}
    true = doubled.run([truth(output.tensor, doubled) for output in program.outputs], feeds)
    known = {value: widened(value.const_value.numpy()) for value in model.graph.initializers.values()}
    for value, each in zip(model.graph.inputs, program.inputs, strict=True):
        known[value] = as_real(inputs[each.name])
    evaluate_nodes(model.graph, known)
    tolerance = NARROW_TOLERANCE if doubled.narrow else TOLERANCE
    for output, value, array in zip(program.outputs, model.graph.outputs, true, strict=True):
        problem = difference(known[value], as_real(array), "TensorFlow", tolerance)
        if problem:
            raise ExportError(
                f"the output {output.name!r} of {program.name} is not equal to TensorFlow after layers were restored: "
                f"{problem}. This is a fault of porter's; please report it with the model."
            )
