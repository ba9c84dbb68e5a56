"""From an `ExportedProgram` to structured ONNX: standard operators with module scopes, names and kinds.

Translated here rather than by `torch.onnx`, which decomposes BatchNorm, Dropout and recurrent layers before it
translates, fuses and renames weights when it optimises, and gives wrong results without an error for some operators.
"""

from __future__ import annotations

import json
import operator
from collections import Counter
from collections.abc import Mapping
from typing import Any

import onnx_ir as ir
import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import ConstantArgument, InputKind

from porter.converters.frontends.builder import Builder
from porter.converters.frontends.torch import control, symbols, table
from porter.converters.frontends.torch.aliases import Aliases
from porter.converters.frontends.torch.complexes import is_complex, which_complex
from porter.converters.frontends.torch.decompose import Decompositions, tensor_arguments
from porter.converters.frontends.torch.drawn import draws
from porter.converters.frontends.torch.dtypes import from_torch
from porter.converters.frontends.torch.fxgraph import (
    by_schema,
    everywhere,
    is_inplace,
    is_vmap,
    live,
    meta,
    operator_name,
)
from porter.converters.frontends.torch.metadata import frames, module_of, scope, source_line
from porter.converters.frontends.torch.modules import (
    Origin,
    call_signatures,
    origin_of_module,
    origin_of_program,
    returned_keys,
)
from porter.converters.initial import Draw
from porter.converters.opset import HOLDS, INITIAL, KIND, MODULES, OPSET, ORIGIN, SCOPE, SIZE, SOURCE, TRAINABLE
from porter.errors import ExportError, UnsupportedError


class Translator:
    """One program on its way to ONNX."""

    def __init__(
        self, program: ExportedProgram, origin: Origin, names: dict[str, dict[int, str]], drawn: Mapping[str, Draw]
    ) -> None:
        self.program = program
        self.origin = origin
        self.draws = drawn
        self.op = Builder()
        self.env = Aliases(self.op, self._call)
        self.dims = symbols.Names(program, names)
        self.inputs: list[ir.Value] = []
        self.decompositions = Decompositions()
        self.live = live(program.graph)
        self.graphs = {program.graph, *(node.graph for node in everywhere(program.graph))}
        self.unnamed = {node.name for node in program.graph.nodes}
        for node in program.graph.nodes:
            several = node.meta.get("val")
            self.unnamed |= {
                f"{node.name}_{i}" for i in range(len(several) if isinstance(several, list | tuple) else 0)
            }
        self.op.reserve(self.unnamed)

    def run(self) -> ir.Model:
        """The structured model.

        Raises:
            UnsupportedError: naming every ATen operator without a rule, with its modules and counts.
        """
        self._refuse_missing()
        self._placeholders()
        self.unnamed -= self.op.initializers.keys()
        returned = self._statements(self.program.graph)
        outputs = self._outputs(returned)
        graph = ir.Graph(
            self.inputs,
            outputs,
            nodes=self.op.nodes,
            initializers=list(self.op.initializers.values()),
            opset_imports={"": OPSET, **{node.domain: 1 for node in self.op.nodes if node.domain}},
            name=self.origin.name,
        )
        facts = self.origin.facts(call_signatures(self.program, self.env.get))
        facts.get("", {})["returns"] = returned_keys(self.program, returned)
        graph.metadata_props[MODULES] = json.dumps(facts)
        return ir.Model(graph, ir_version=10, producer_name="porter")

    def _refuse_missing(self) -> None:
        missing: dict[str, Counter[str]] = {}
        for node in everywhere(self.program.graph):
            if node.op == "call_function" and not self._has_rule(node):
                missing.setdefault(operator_name(node.target), Counter())[module_of(node)] += 1
        if missing:
            lines = [
                f"  {name} ({sum(where.values())}x) in {', '.join(list(where)[:4])}{', …' if len(where) > 4 else ''}"
                for name, where in sorted(missing.items())
            ]
            raise UnsupportedError(
                f"{len(missing)} operator(s) of {self.origin.name} have no translation to ONNX:\n"
                + "\n".join(lines)
                + "\nGive rules of your own with --rules FILE.py, or rewrite those lines with other operators; "
                "`porter inspect` lists every operator of a model."
            )

    def _has_rule(self, node: torch.fx.Node) -> bool:
        target = node.target
        if isinstance(target, torch._ops.HigherOrderOperator):
            return control.is_control(node)
        if is_vmap(target):
            return False
        if not isinstance(target, torch._ops.OpOverload) or not isinstance(
            node.meta.get("val"), torch.Tensor | list | tuple
        ):
            return True
        if node not in self.live and node.graph is self.program.graph:
            return True
        return table.find(node) is not None or self.decompositions.find(node) is not None

    # ---- values ----

    def _placeholders(self) -> None:
        signature = self.program.graph_signature
        specs = {spec.arg.name: spec for spec in signature.input_specs if not isinstance(spec.arg, ConstantArgument)}
        ties = self.origin.ties
        trainable = self.origin.trainable
        for node in self.program.graph.nodes:
            if node.op != "placeholder":
                continue
            spec = specs.get(node.name)
            if spec is None:
                self.env.define(node, None)
            elif spec.kind is InputKind.USER_INPUT:
                value = self.dims.input_value(node)
                if value.name in self.op.initializers:
                    value.name = f"{value.name}_input"
                for axis, size in enumerate(value.shape):
                    self.op.origins.setdefault(str(getattr(size, "value", size)), (value, axis))
                self.inputs.append(value)
                self.env.define(node, value)
            else:
                self.env.define(node, self._initializer(node, spec, ties, trainable))
            if spec is not None:
                self._hold(node, self.env[node])

    def _initializer(self, node: torch.fx.Node, spec: Any, ties: dict[str, str], trainable: frozenset[str]) -> ir.Value:
        name = ties.get(spec.target, spec.target)
        if name in self.op.initializers:
            return self.op.initializers[name]
        if spec.kind in (InputKind.PARAMETER, InputKind.BUFFER) and spec.target in self.program.state_dict:
            tensor = self.program.state_dict[spec.target]
        else:
            tensor = self.program.constants[spec.target]
        if not isinstance(tensor, torch.Tensor):
            raise ExportError(f"the constant {spec.target!r} is a {type(tensor).__name__}, not a tensor")
        tensor = torch.view_as_real(tensor.resolve_conj()) if tensor.is_complex() else tensor
        kind = {InputKind.PARAMETER: "parameter", InputKind.BUFFER: "buffer"}.get(spec.kind, "constant")
        if spec.kind is InputKind.BUFFER and spec.persistent is False:
            kind = "constant"  # no checkpoint holds it
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
        if name in self.draws:
            value.metadata_props[INITIAL] = self.draws[name].to_json()
        self.op.initializers[name] = value
        return value

    def _argument(self, argument: Any) -> Any:
        """An fx argument as a rule takes it."""
        if isinstance(argument, torch.fx.Node):
            return argument if argument.op == "get_attr" else self.env[argument]
        if isinstance(argument, list | tuple):
            return [self._argument(item) for item in argument]
        return argument

    # ---- statements ----

    def _statements(self, graph: torch.fx.Graph) -> list[Any]:
        """Translate a graph whose placeholders are defined; its outputs as fx arguments."""
        for node in graph.nodes:
            if node.op == "call_function" and node in self.live:
                self._statement(node)
            elif node.op == "output":
                return list(node.args[0]) if isinstance(node.args[0], list | tuple) else [node.args[0]]
        return []

    def _inline(self, graph: torch.fx.Graph, arguments: Any) -> list[Any]:
        """The output values of an inner graph, translated where it stands."""
        placeholders = [node for node in graph.nodes if node.op == "placeholder"]
        for placeholder, argument in zip(placeholders, arguments, strict=True):
            if isinstance(argument, torch.fx.Node):
                self.env.rename(placeholder, argument)
            else:
                self.env.define(placeholder, argument)
        self.live |= live(graph)
        return [self._argument(output) for output in self._statements(graph)]

    def _statement(self, node: torch.fx.Node) -> None:
        if node.graph is self.program.graph:
            self.op.metadata = {ORIGIN: node.name}
        first = len(self.op.nodes)
        value = self._call(node)
        if is_inplace(node.target):
            self._claim(self.env.change(node, value), first)
        else:
            self.env.define(node, value)
            self._hold(node, value)

    def _call(self, node: torch.fx.Node, stands: bool = True) -> Any:
        """The value of a node; `stands` is false for the view of an auxiliary tensor."""
        meta = node.meta.get("val")
        if isinstance(meta, bool | int | float):
            return meta
        args, kwargs = by_schema(node)
        args = [self._argument(argument) for argument in args]  # before the stamp: a stale view is made anew here
        kwargs = {key: self._argument(argument) for key, argument in kwargs.items()}
        if node.target is operator.getitem:
            return self._element(node, args[0], args[1])
        if getattr(node.target, "__name__", "").startswith("return_types_"):  # a named tuple of what was computed
            return tuple(args)
        first = len(self.op.nodes)
        self._stamp(node)
        if isinstance(meta, torch.SymInt | torch.SymFloat | torch.SymBool):
            value = symbols.compute(self.op, node, self.dims, args)
        elif isinstance(node.target, torch._ops.HigherOrderOperator):
            value = control.Translation(self.op, self._argument, self._inline, self.dims).node(node)
        else:
            value = self._apply(node, args, kwargs)
        if stands:
            value = self._name(node, value, first)
        return value

    def _element(self, node: torch.fx.Node, several: Any, index: int) -> Any:
        if several[index] is None:
            producer = node.args[0]
            raise UnsupportedError(
                f"{producer.target} in {module_of(node)} ({source_line(node)}): its output {index} has no translation"
            )
        return several[index]

    def _stamp(self, node: torch.fx.Node) -> None:
        if "nn_module_stack" in node.meta:  # a decomposition's nodes lie where the node does that they stand for
            self.op.prefix = node.name
        # A graph inside has no scope where it was exported elsewhere.
        if node.graph is self.program.graph or (node.graph in self.graphs and scope(node)):
            self.op.metadata = {SCOPE: json.dumps(scope(node)), ORIGIN: self.op.metadata[ORIGIN]}
            lines = frames(node)
            if lines:
                self.op.metadata[SOURCE] = json.dumps(lines)
        meta = node.meta.get("val")
        many = meta if isinstance(meta, list | tuple) else [meta]
        tensors = [fake for fake in many if isinstance(fake, torch.Tensor)]
        self.op.dtypes = [from_torch(fake.dtype) for fake in tensors]
        self.op.dtype = self.op.dtypes[0] if tensors else None
        self.op.shapes = [self.dims.shape(fake) for fake in tensors]
        self.op.shape = self.op.shapes[0] if tensors else None

    def _apply(self, node: torch.fx.Node, args: list[Any], kwargs: dict[str, Any]) -> Any:
        rule = table.find(node)
        if rule is None:
            graph = self.decompositions.find(node)
            assert graph is not None
            results = self._inline(graph, tensor_arguments(node))
            if len(results) == 1 and isinstance(results[0], tuple):
                results = list(results[0])
            return tuple(results) if isinstance(node.meta["val"], list | tuple) else results[0]
        if rule.promoted:
            self._promote(node, rule, args)
        self.op.complex = [which_complex(argument) for argument in by_schema(node)[0]]
        try:
            return rule.function(self.op, *args, **kwargs)
        except (UnsupportedError, TypeError) as error:
            raise UnsupportedError(f"{node.target} in {module_of(node)} ({source_line(node)}): {error}") from error

    def _promote(self, node: torch.fx.Node, rule: table.AtenRule, args: list[Any]) -> None:
        from torch._prims_common import ELEMENTWISE_TYPE_PROMOTION_KIND as KINDS
        from torch._prims_common import elementwise_dtypes

        given = by_schema(node)[0]
        positions = [i for i in rule.promoted if i < len(args) and args[i] is not None]
        metas = [meta(given[i]) for i in positions]
        kind = KINDS.INT_TO_FLOAT if rule.promotion == "int_to_float" else KINDS.DEFAULT
        dtype = from_torch(elementwise_dtypes(*metas, type_promotion_kind=kind)[0])
        for position in positions:
            value = args[position]
            args[position] = (
                self.op.cast(value, dtype) if isinstance(value, ir.Value) else self.op.constant(value, dtype)
            )

    def _name(self, node: torch.fx.Node, value: Any, first: int) -> Any:
        """Give what this node made its fx name, dtype and symbolic shape."""
        meta = node.meta.get("val")
        if isinstance(meta, torch.Tensor):
            return self._named(node.name, value, meta, first)
        if isinstance(meta, list | tuple) and isinstance(value, list | tuple):
            pairs = enumerate(zip(value, meta, strict=False))
            return tuple(self._named(f"{node.name}_{i}", result, fake, first) for i, (result, fake) in pairs)
        return value

    def _named(self, name: str, value: Any, fake: Any, first: int) -> Any:
        if not isinstance(value, ir.Value) or not isinstance(fake, torch.Tensor):
            return value
        value = self.op.cast(value, from_torch(fake.dtype))
        if not any(value.producer() is new for new in self.op.nodes[first:]) or value.metadata_props.get(SIZE):
            return value
        if name in self.unnamed:
            self.unnamed.discard(name)
            value.name = name
        value.shape = ir.Shape(self.dims.shape(fake))
        for axis, size in enumerate(value.shape):
            if not isinstance(size, int) and str(size.value).isidentifier():
                self.op.origins.setdefault(str(size.value), (value, axis))
        return value

    # ---- what stands for what ----

    def _hold(self, node: torch.fx.Node, value: Any) -> None:
        """Write on values which of the program's tensors they are."""
        if node.graph is not self.program.graph:
            return
        several = isinstance(value, list | tuple)
        for index, result in enumerate(value if several else [value]):
            if isinstance(result, ir.Value):
                held = result.metadata_props.get(HOLDS, "").split()
                result.metadata_props[HOLDS] = " ".join([*held, f"{node.name}#{index}" if several else node.name])

    def _claim(self, owner: torch.fx.Node, first: int) -> None:
        """After a mutation: every tensor whose current value was made just now."""
        made = {id(output) for node in self.op.nodes[first:] for output in node.outputs}
        for node, value in self.env.holders():
            if id(value) in made:
                self._hold(node, value)
                fake = node.meta["val"]
                value.shape, value.dtype = ir.Shape(self.dims.shape(fake)), from_torch(fake.dtype)

    def _outputs(self, arguments: list[Any]) -> list[ir.Value]:
        mutated = [spec for spec in self.program.graph_signature.output_specs if spec.kind.name not in ("USER_OUTPUT",)]
        if mutated:
            raise ExportError(
                f"the model changes its own buffer {mutated[0].target!r} in a forward pass; "
                "ports are functions of their inputs"
            )
        results: list[ir.Value] = []
        for argument in arguments:
            value = self.env[argument] if isinstance(argument, torch.fx.Node) else argument
            if value is None:
                continue
            if is_complex(argument):
                raise UnsupportedError(
                    f"{self.origin.name} returns the complex tensor {argument.name!r}; return torch.view_as_real of it"
                )
            if not isinstance(value, ir.Value):
                value = self.op.constant(value, ir.DataType.INT64 if isinstance(value, int) else ir.DataType.FLOAT)
            results.append(self._distinct(value, results))
        if not results:
            raise ExportError(f"{self.origin.name} returns no tensor")
        return results

    def _distinct(self, value: ir.Value, taken: list[ir.Value]) -> ir.Value:
        """Graph outputs must be nodes' own outputs, each once."""
        if value in taken or value in self.inputs or value.producer() is None:
            copy = self.op.Identity(value)
            copy.shape, copy.type = value.shape, value.type
            return copy
        return value


def translate(
    program: ExportedProgram,
    model: torch.nn.Module | ExportedProgram,
    names: dict[str, dict[int, str]] | None = None,
) -> ir.Model:
    """Structured ONNX from a program. `names` gives dynamic axes of inputs their names ({input: {axis: name}})."""
    origin = origin_of_module(model) if isinstance(model, torch.nn.Module) else origin_of_program(model)
    return Translator(program, origin, names or {}, draws(model)).run()
