"""SavedModels, graphs with checkpoints and frozen graphs, read from disk."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import tensorflow as tf
from google.protobuf.message import DecodeError
from tensorflow.core.protobuf import saved_model_pb2

from porter.converters.frontends.tensorflow.program import Input, Output, Variable
from porter.converters.frontends.tensorflow.sources import SavedGraph, identifier, refuse_dtype
from porter.errors import InputError

_DEFAULT = "serving_default"
_INNER = {"__saved_model_init_op", "__saved_model_train_op"}


@dataclass(frozen=True)
class Served:
    """A signature of a SavedModel; `root` is the loaded object, which keeps its variables alive."""

    name: str
    function: Any
    root: Any

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)


def saved_model(folder: Path, signature: str | None = None) -> Served | SavedGraph:
    """A SavedModel's signature, by TensorFlow 2's loader or, where that fails, by the file alone.

    Raises:
        InputError: it cannot be read, has no signature, or has several and none is chosen.
    """
    try:
        root = tf.saved_model.load(str(folder))
        signatures = root.signatures
    except Exception as error:
        return _from_file(folder, signature, error)
    name = _chosen(list(signatures), signature, folder)
    return Served(folder.name, signatures[name], root)


def _chosen(names: Sequence[str], wanted: str | None, where: Path) -> str:
    """The signature to take."""
    listed = ", ".join(sorted(names))
    if not names:
        raise InputError(
            f"{where} has no signature, so nothing says what goes in and comes out: save it with signatures=…"
        )
    if wanted is not None:
        if wanted not in names:
            raise InputError(f"{where} has no signature {wanted!r}; it has {listed}")
        return wanted
    if len(names) > 1 and _DEFAULT not in names:
        raise InputError(f"{where} has several signatures: choose one with signature= (--signature): {listed}")
    return _DEFAULT if _DEFAULT in names else names[0]


def _from_file(folder: Path, signature: str | None, reason: Exception) -> SavedGraph:
    """The graph of a SavedModel that TensorFlow 2 does not load, as a session of TensorFlow 1 would run it."""
    saved = saved_model_pb2.SavedModel()
    try:
        saved.ParseFromString((folder / "saved_model.pb").read_bytes())
    except DecodeError as error:
        raise InputError(
            f"{folder / 'saved_model.pb'} is damaged or cut off: {error}; export the model again"
        ) from error
    graphs = [graph for graph in saved.meta_graphs if "serve" in graph.meta_info_def.tags] or list(saved.meta_graphs)
    if not graphs:
        raise InputError(
            f"{folder / 'saved_model.pb'} holds no graph: it is damaged or cut off; export the model again"
        )
    signatures = {name: each for name, each in graphs[0].signature_def.items() if name not in _INNER}
    if not signatures:
        first = (str(reason).strip().splitlines() or [""])[0]
        raise InputError(f"{folder} has no signature, and cannot be loaded as an object: {first}")
    name = _chosen(list(signatures), signature, folder)
    chosen = signatures[name]
    inputs = tuple(_input(key, info) for key, info in sorted(chosen.inputs.items()))
    outputs = tuple(Output(identifier(key), _tensor(key, info)) for key, info in sorted(chosen.outputs.items()))
    variables = folder / "variables" / "variables"
    checkpoint = variables if variables.with_suffix(".index").exists() else None
    return SavedGraph(folder.name, graphs[0].graph_def, inputs, outputs, checkpoint, trainable=_trainable(graphs[0]))


def _tensor(key: str, info: Any) -> str:
    if info.WhichOneof("encoding") != "name":
        raise InputError(f"{key!r} of the signature is a sparse or composite tensor: porter ports dense ones")
    return info.name


def _input(key: str, info: Any) -> Input:
    dtype = tf.as_dtype(info.dtype)
    refuse_dtype(dtype, f"the input {key!r}")
    shape = tf.TensorShape(info.tensor_shape)
    if shape.rank is None:
        raise InputError(f"the input {key!r} has no known number of axes")
    return Input(identifier(key), _tensor(key, info), dtype, tuple(shape.as_list()))


def _trainable(graph: Any) -> frozenset[str] | None:
    """The names of the variables that training changes, where the graph says so."""
    from tensorflow.core.framework import variable_pb2

    if "trainable_variables" not in graph.collection_def:
        return None
    names = set()
    for data in graph.collection_def["trainable_variables"].bytes_list.value:
        variable = variable_pb2.VariableDef.FromString(data)
        names.add(variable.variable_name.split(":")[0])
    return frozenset(names)


# ---- .meta and .pb ----


def meta_graph(path: Path, signature: str | None = None) -> SavedGraph:
    """A graph that TensorFlow 1's Saver wrote beside a checkpoint.

    Raises:
        InputError: it is damaged, its checkpoint is missing, or it does not say what goes in and out.
    """
    prefix = path.with_suffix("")
    if not Path(f"{prefix}.index").exists():
        raise InputError(f"{path} holds a graph without numbers, and there is no checkpoint {prefix}.index beside it")
    meta = tf.compat.v1.MetaGraphDef()
    _parse(meta, path, "a graph of TensorFlow 1 (.meta)")
    inputs, outputs = interface(meta.graph_def, signature, path)
    return SavedGraph(prefix.name, meta.graph_def, inputs, outputs, prefix, trainable=_trainable(meta))


def frozen_graph(path: Path, signature: str | None = None) -> SavedGraph:
    """A graph whose variables were made constants; those that are weights are given back their names.

    Raises:
        InputError: it is damaged, or it does not say what goes in and out.
    """
    graph = tf.compat.v1.GraphDef()
    _parse(graph, path, "a frozen TensorFlow graph")
    inputs, outputs = interface(graph, signature, path)
    return SavedGraph(path.stem, graph, inputs, outputs, None, weights=_thaw(graph))


def _parse(message: Any, path: Path, kind: str) -> None:
    try:
        message.ParseFromString(path.read_bytes())
    except DecodeError as error:
        raise InputError(f"{path} cannot be read as {kind}: it is damaged or cut off") from error


_TRAINING = re.compile(r"Assign|Save|Restore|Summary|Apply|Merge|Print|Assert|NoOp|VarIsInitialized|Initializer")


def interface(graph: Any, signature: str | None, path: Path) -> tuple[tuple[Input, ...], tuple[Output, ...]]:
    """What goes into a graph and comes out of it: its placeholders, and what no other node reads.

    `signature` names them where that is not clear: "images,mask->softmax".
    """
    nodes = {node.name: node for node in graph.node}
    advice = 'name them with signature= (--signature) as "input,input->output"'
    if signature is not None and "->" in signature:
        before, _, after = signature.partition("->")
        feeds, fetches = ([name.strip() for name in part.split(",") if name.strip()] for part in (before, after))
        unknown = [name for name in (*feeds, *fetches) if name.split(":")[0] not in nodes]
        if unknown:
            raise InputError(f"{path} has no node {unknown[0]!r}")
    else:
        fetches = _sinks(graph)
        reached = _reached(nodes, fetches)
        feeds = [node.name for node in graph.node if node.op == "Placeholder" and node.name in reached]
        if len(fetches) != 1:
            some = ", ".join(fetches[:6]) + (", …" if len(fetches) > 6 else "")
            raise InputError(f"{path} does not say which of its nodes is the output ({some or 'none'}): {advice}")
    if not feeds:
        raise InputError(f"{path} has no placeholder that its output depends on: {advice}")
    return (
        tuple(_placeholder(nodes[name.split(":")[0]], name) for name in feeds),
        tuple(Output(identifier(name), name if ":" in name else f"{name}:0") for name in fetches),
    )


def _placeholder(node: Any, name: str) -> Input:
    dtype = tf.as_dtype(node.attr["dtype"].type)
    refuse_dtype(dtype, f"the input {name!r}")
    shape = tf.TensorShape(node.attr["shape"].shape)
    if shape.rank is None and "_output_shapes" in node.attr:
        shape = tf.TensorShape(node.attr["_output_shapes"].list.shape[0])
    if shape.rank is None:
        raise InputError(f"the input {name!r} has no known number of axes")
    return Input(identifier(name), name if ":" in name else f"{name}:0", dtype, tuple(shape.as_list()))


def _sinks(graph: Any) -> list[str]:
    """Nodes that nothing reads, reached from a placeholder, that are no part of training or saving."""
    read = {source.lstrip("^").split(":")[0] for node in graph.node for source in node.input}
    after: set[str] = set()
    nodes = {node.name: node for node in graph.node}
    state: dict[str, bool] = {}

    def fed(name: str) -> bool:
        waiting = [name]
        while waiting:
            top = waiting[-1]
            if top in state or top not in nodes:
                waiting.pop()
                continue
            sources = [s.lstrip("^").split(":")[0] for s in nodes[top].input]
            open_ = [s for s in sources if s not in state and s in nodes and s not in after]
            if nodes[top].op == "Placeholder":
                state[top] = True
            elif not open_:
                state[top] = any(state.get(s, False) for s in sources)
            else:
                after.add(top)
                waiting += open_
                continue
            waiting.pop()
        return state.get(name, False)

    return [
        node.name
        for node in graph.node
        if node.name not in read and not _TRAINING.search(node.op) and node.op != "Placeholder" and fed(node.name)
    ]


def _reached(nodes: Mapping[str, Any], fetches: Sequence[str]) -> set[str]:
    seen: set[str] = set()
    waiting = [name.split(":")[0] for name in fetches]
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in seen:
            seen.add(name)
            waiting += [source.lstrip("^").split(":")[0] for source in nodes[name].input]
    return seen


# ---- frozen weights ----

# The operands that weights are: {operator: positions}, and of which of them training keeps statistics.
_WEIGHTS = {
    "Conv2D": (1,), "Conv3D": (1,), "DepthwiseConv2dNative": (1,), "Conv2DBackpropInput": (1,), "MatMul": (0, 1),
    "BatchMatMulV2": (0, 1), "BiasAdd": (1,), "FusedBatchNorm": (1, 2, 3, 4), "FusedBatchNormV2": (1, 2, 3, 4),
    "FusedBatchNormV3": (1, 2, 3, 4), "GatherV2": (0,), "Conv3DBackpropInputV2": (1,),
}  # fmt: skip
_STATISTICS = {("FusedBatchNorm", 3), ("FusedBatchNorm", 4)}
_SUFFIX = re.compile(r"(/ReadVariableOp(/resource)?|/read)$")


def _thaw(graph: Any) -> dict[str, Variable]:
    """The constants of a frozen graph that were variables, which from then on are read as such."""
    nodes = {node.name: node for node in graph.node}
    found: dict[str, bool] = {}  # constant -> whether it is a statistic
    for node in graph.node:
        for position, source in enumerate(node.input):
            name = source.split(":")[0]
            passed = False
            while name in nodes and nodes[name].op == "Identity":
                name, passed = nodes[name].input[0].split(":")[0], True
            if name not in nodes or nodes[name].op != "Const":
                continue
            dtype = tf.as_dtype(nodes[name].attr["dtype"].type)
            weight = position in _WEIGHTS.get(node.op, ()) or passed
            if weight and dtype.is_floating and len(nodes[name].attr["value"].tensor.tensor_shape.dim):
                statistic = (re.sub(r"V\d$", "", node.op), position) in _STATISTICS
                found[name] = found.get(name, False) or statistic
    weights: dict[str, Variable] = {}
    taken: set[str] = set()
    for name, statistic in found.items():
        node = nodes[name]
        array = np.asarray(tf.make_ndarray(node.attr["value"].tensor))
        label = _SUFFIX.sub("", name)
        label = label if label not in taken else name
        taken.add(label)
        weights[name] = Variable(label, array, not statistic, "buffer" if statistic else "parameter")
        node.op = "VariableV2"
        node.attr["shape"].shape.CopyFrom(tf.TensorShape(array.shape).as_proto())
        del node.attr["value"]
    return weights
