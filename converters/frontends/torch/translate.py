"""From an `ExportedProgram` to structured ONNX: standard operators with module scopes, names and kinds.

Translated here rather than by `torch.onnx`, which decomposes BatchNorm, Dropout and recurrent layers before it
translates, fuses and renames weights when it optimises, and gives wrong results without an error for some operators.
"""

from __future__ import annotations

import json
import operator
from collections import Counter
from typing import Any

import onnx_ir as ir
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind, TensorArgument

from porter.converters.frontends.torch import symbols, table
from porter.converters.frontends.torch.aliases import Aliases
from porter.converters.frontends.torch.builder import Builder
from porter.converters.frontends.torch.dtypes import from_torch
from porter.converters.frontends.torch.modules import describe, tied_names
from porter.converters.opset import KIND, MODULES, OPSET, SCOPE, SOURCE, TRAINABLE
from porter.errors import ExportError, UnsupportedError

_SILENT = {
    "_assert_scalar",
    "_assert_tensor_metadata",
    "sym_constrain_range",
    "sym_constrain_range_for_size",
    "_assert_async",
}


class Translator:
    """One program on its way to ONNX."""

    def __init__(self, program: ExportedProgram, model: torch.nn.Module, names: dict[str, dict[int, str]]) -> None:
        self.program = program
        self.model = model
        self.op = Builder()
        self.env = Aliases(self.op, self._call)
        self.dims = symbols.Names(program, names)
        self.inputs: list[ir.Value] = []
        self.missing: Counter[tuple[str, str]] = Counter()

    def run(self) -> ir.Model:
        """The structured model.

        Raises:
            UnsupportedError: naming every ATen operator without a rule, with its modules and counts.
        """
        self._refuse_missing()
        self._placeholders()
        outputs: list[ir.Value] = []
        for node in self.program.graph.nodes:
            if node.op == "call_function":
                self._statement(node)
            elif node.op == "output":
                outputs = self._outputs(node)
        graph = ir.Graph(
            self.inputs,
            outputs,
            nodes=self.op.nodes,
            initializers=list(self.op.initializers.values()),
            opset_imports={"": OPSET},
            name=type(self.model).__name__,
        )
        graph.metadata_props[MODULES] = json.dumps(describe(self.model, self._signatures()))
        return ir.Model(graph, ir_version=10, producer_name="porter")

    def _refuse_missing(self) -> None:
        missing: dict[str, Counter[str]] = {}
        for node in self.program.graph.nodes:
            target = node.target
            if node.op != "call_function" or not isinstance(target, torch._ops.OpOverload | torch._ops.HigherOrderOperator):
                continue
            if isinstance(node.meta.get("val"), torch.SymInt | torch.SymFloat | torch.SymBool | int | float):
                continue
            if table.find(target) is None and getattr(target, "_opname", "") not in _SILENT:
                scope = _scope(node)
                missing.setdefault(str(target), Counter())[scope[-1][0] if scope else ""] += 1
        if missing:
            lines = [
                f"  {name} ({sum(where.values())}x) in {', '.join(path or 'the model itself' for path in list(where)[:4])}"
                for name, where in sorted(missing.items())
            ]
            raise UnsupportedError(
                f"{len(missing)} operator(s) of {type(self.model).__name__} have no translation to ONNX:\n"
                + "\n".join(lines)
                + "\nRewrite those lines with other operators; `porter inspect` lists every operator of a model."
            )

    # ---- values ----

    def _placeholders(self) -> None:
        signature = self.program.graph_signature
        specs = {spec.arg.name: spec for spec in signature.input_specs if not isinstance(spec.arg, ConstantArgument)}
        ties = tied_names(self.model)
        trainable = {name for name, p in self.model.named_parameters(remove_duplicate=False) if p.requires_grad}
        for node in self.program.graph.nodes:
            if node.op != "placeholder":
                continue
            spec = specs.get(node.name)
            if spec is None:
                self.env.define(node, None)
            elif spec.kind is InputKind.USER_INPUT:
                value = self.dims.input_value(node)
                for axis, size in enumerate(value.shape):
                    self.op.origins.setdefault(str(getattr(size, "value", size)), (value, axis))
                self.inputs.append(value)
                self.env.define(node, value)
            else:
                self.env.define(node, self._initializer(node, spec, ties, trainable))

    def _initializer(self, node: torch.fx.Node, spec: Any, ties: dict[str, str], trainable: set[str]) -> ir.Value:
        name = ties.get(spec.target, spec.target)
        if name in self.op.initializers:
            return self.op.initializers[name]
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and spec.target in self.program.state_dict:
            tensor = self.program.state_dict[spec.target]
        else:
            tensor = self.program.constants[spec.target]
        if not isinstance(tensor, torch.Tensor):
            raise ExportError(f"the constant {spec.target!r} is a {type(tensor).__name__}, not a tensor")
        kind = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer"}.get(spec.kind, "constant")
        if kind == "constant" and tensor.numel() <= 64:
            return self.op.tensor(tensor.detach().cpu().numpy())
        value = ir.Value(
            name=name,
            shape=ir.Shape(tensor.shape),
            type=ir.TensorType(from_torch(tensor.dtype)),
            const_value=ir.tensor_adapters.TorchTensor(tensor.detach(), name=name),
        )
        value.metadata_props[KIND] = kind
        value.metadata_props[TRAINABLE] = str(int(name in trainable))
        self.op.initializers[name] = value
        return value

    def _argument(self, argument: Any) -> Any:
        """An fx argument as a rule takes it."""
        if isinstance(argument, torch.fx.Node):
            return self.env[argument]
        if isinstance(argument, list | tuple):
            return [self._argument(item) for item in argument]
        return argument

    # ---- statements ----

    def _statement(self, node: torch.fx.Node) -> None:
        if getattr(node.target, "_opname", "") in _SILENT:
            return
        value = self._call(node)
        self.env.define(node, value)
        if _is_inplace(node.target):
            self.env.mutate(node.args[0], value)

    def _call(self, node: torch.fx.Node) -> Any:
        meta = node.meta.get("val")
        if isinstance(meta, bool | int | float):
            return meta
        first = len(self.op.nodes)
        self._stamp(node)
        if node.target is operator.getitem:
            return self.env[node.args[0]][node.args[1]]
        if isinstance(meta, torch.SymInt | torch.SymFloat | torch.SymBool):
            value = symbols.compute(self.op, node, self.dims, self._argument)
        else:
            value = self._apply(node)
        self._name(node, value, first)
        return value

    def _stamp(self, node: torch.fx.Node) -> None:
        self.op.prefix = node.name
        self.op.metadata = {SCOPE: json.dumps(_scope(node))}
        source = _source(node)
        if source:
            self.op.metadata[SOURCE] = source
        meta = node.meta.get("val")
        lead = meta[0] if isinstance(meta, list | tuple) and meta else meta
        self.op.dtype = from_torch(lead.dtype) if isinstance(lead, torch.Tensor) else None
        many = meta if isinstance(meta, list | tuple) else [meta]
        self.op.shapes = [self.dims.shape(fake) for fake in many if isinstance(fake, torch.Tensor)]
        self.op.shape = self.op.shapes[0] if self.op.shapes else None

    def _apply(self, node: torch.fx.Node) -> Any:
        rule = table.find(node.target)
        assert rule is not None
        args = [self._argument(argument) for argument in node.args]
        kwargs = {key: self._argument(argument) for key, argument in node.kwargs.items() if key not in ("pin_memory", "layout", "device")}
        if rule.promoted:
            self._promote(node, rule, args)
        try:
            return rule.function(self.op, *args, **kwargs)
        except (UnsupportedError, TypeError) as error:
            where = _scope(node)[-1][0] if _scope(node) else ""
            raise UnsupportedError(f"{node.target} in {where or 'the model itself'} ({_source(node)}): {error}") from error

    def _promote(self, node: torch.fx.Node, rule: table.AtenRule, args: list[Any]) -> None:
        from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KINDS
        from torch._prims_common import elementwise_dtypes

        positions = [i for i in rule.promoted if i < len(args) and args[i] is not None]
        metas = [_meta(node.args[i]) for i in positions]
        kind = KINDS.INT_TO_FLOAT if rule.promotion == "int_to_float" else KINDS.DEFAULT
        dtype = from_torch(elementwise_dtypes(*metas, type_promotion_kind=kind)[0])
        for position in positions:
            value = args[position]
            args[position] = self.op.cast(value, dtype) if isinstance(value, ir.Value) else self.op.constant(value, dtype)

    def _name(self, node: torch.fx.Node, value: Any, first: int) -> None:
        """Give what this node made its fx name, dtype and symbolic shape."""
        made = {id(out) for new in self.op.nodes[first:] for out in new.outputs}
        meta = node.meta.get("val")
        pairs = zip(value, meta, strict=False) if isinstance(value, tuple | list) else [(value, meta)]
        for index, (result, fake) in enumerate(pairs):
            if not isinstance(result, ir.Value) or id(result) not in made:
                continue
            result.name = node.name if not isinstance(value, tuple | list) else f"{node.name}_{index}"
            if isinstance(fake, torch.Tensor):
                result.shape = ir.Shape(self.dims.shape(fake))
                result.dtype = from_torch(fake.dtype)
                made.discard(id(result))

    def _outputs(self, node: torch.fx.Node) -> list[ir.Value]:
        mutated = [spec for spec in self.program.graph_signature.output_specs if spec.kind.name not in ("USER_OUTPUT",)]
        if mutated:
            raise ExportError(f"the model changes its own buffer {mutated[0].target!r} in a forward pass; ports are functions of their inputs")
        results = []
        for argument in node.args[0]:
            value = self.env[argument] if isinstance(argument, torch.fx.Node) else argument
            if value is None:
                continue
            if not isinstance(value, ir.Value):
                value = self.op.constant(value, ir.DataType.INT64 if isinstance(value, int) else ir.DataType.FLOAT)
            results.append(self._distinct(value, results))
        if not results:
            raise ExportError(f"{type(self.model).__name__} returns no tensor")
        return results

    def _distinct(self, value: ir.Value, taken: list[ir.Value]) -> ir.Value:
        """Graph outputs must be nodes' own outputs, each once."""
        if value in taken or value in self.inputs or value.producer() is None:
            copy = self.op.Identity(value)
            copy.shape, copy.type = value.shape, value.type
            return copy
        return value

    def _signatures(self) -> dict[str, dict[str, Any]]:
        """{module call: its arguments and results as value names}, where torch could tell."""
        nodes = {node.name: node for node in self.program.graph.nodes}

        def name(argument: Any) -> str | None:
            node = nodes.get(argument.name) if isinstance(argument, TensorArgument) else None
            value = self.env[node] if node is not None else None
            return value.name if isinstance(value, ir.Value) else None

        calls = {}
        for entry in self.program.module_call_graph:
            signature = entry.signature
            if not entry.fqn or signature is None:
                continue
            positional, keywords = signature.in_spec.children()
            count = positional.num_leaves
            names = [name(argument) for argument in signature.inputs]
            flat = positional.num_children == count and keywords.num_children == keywords.num_leaves
            calls[entry.fqn] = {
                "args": names[:count] if flat else [],
                "kwargs": dict(zip(keywords.context, names[count:], strict=False)) if flat else {},
                "outputs": [name(argument) for argument in signature.outputs],
            }
        return calls


def translate(program: ExportedProgram, model: torch.nn.Module, names: dict[str, dict[int, str]] | None = None) -> ir.Model:
    """Structured ONNX from a program. `names` gives dynamic axes of inputs their names ({input: {axis: name}})."""
    return Translator(program, model, names or {}).run()


def _is_inplace(target: Any) -> bool:
    schema = getattr(target, "_schema", None)
    return bool(schema and schema.arguments and schema.arguments[0].alias_info and schema.arguments[0].alias_info.is_write)


def _meta(argument: Any) -> Any:
    if isinstance(argument, torch.fx.Node):
        value = argument.meta["val"]
        return value if not isinstance(value, torch.SymInt) else 1
    return argument


def _scope(node: torch.fx.Node) -> list[list[Any]]:
    """[[path, call number, class], …] from the model inwards."""
    stack = node.meta.get("nn_module_stack") or {}
    scopes = []
    for key, (path, kind) in stack.items():
        if key.startswith("_empty"):
            return []
        number = key.rpartition("@")[2] if "@" in key else "0"
        kind = kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}"
        scopes.append([path, int(number) if number.isdigit() else 0, kind])
    return scopes


def _source(node: torch.fx.Node) -> str:
    """ "file:line" of the innermost frame of the model's own code."""
    trace = node.meta.get("stack_trace") or ""
    lines = [line.strip() for line in trace.splitlines() if line.strip().startswith('File "')]
    own = [line for line in lines if "/torch/nn/" not in line] or lines
    if not own:
        return ""
    file, _, rest = own[-1].removeprefix('File "').partition('", line ')
    return f"{file}:{rest.split(',')[0]}"
