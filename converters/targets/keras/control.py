"""Branches and loops.

TensorFlow's `ops.scan` wants results of the same number, shapes and types as the carried values; other scans go through
a helper. Where data decide on the number of turns, only TensorFlow can stack what they give.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import onnx_ir as ir

from porter.converters.codegen.functions import Function
from porter.converters.codegen.nodes import Apply, Binary, Expr, Items, Literal, Ref, Size, call, dims, walk, wrap
from porter.converters.codegen.tree import Statement
from porter.converters.graph.canonical import constant_of
from porter.converters.graph.sequences import is_sequence
from porter.converters.opset import KIND
from porter.converters.targets.keras import keras_op
from porter.converters.targets.keras.cast import dtype_argument
from porter.converters.targets.table import CannotBind
from porter.converters.targets.types import Dims, Ints, Tensor


@keras_op("If", layout="fixed")
def branch(cond: Tensor, *, outs: list[Tensor], then_branch: Function, else_branch: Function) -> Expr:
    """Both branches see what stands around them."""
    if any(is_sequence(out.value) for out in outs):
        raise CannotBind("its branches give sequences of tensors of different lengths")
    return call("ops.cond", _single(cond), then_branch, else_branch)


def _single(scalar: Tensor) -> Expr:
    """ONNX allows one element of any rank where Keras wants a scalar."""
    return scalar if scalar.rank == 0 else call("ops.reshape", scalar, ())


@keras_op("Loop", domain="porter", layout="fixed")
def counted_loop(
    turns: Dims | None = None,
    *carried: Tensor,
    outs: list[Tensor],
    body: Function,
    condition: Function | None = None,
) -> Expr:
    """ONNX's Loop: `ops.fori_loop`, `ops.scan` where turns give results, `ops.while_loop` with a condition."""
    if turns is None:
        raise CannotBind("the loop never ends")
    return _Loop(wrap(turns[0]), list(carried), outs, body, condition).written()


@keras_op("Loop", domain="porter", layout="fixed")
def loop(
    turns: Tensor | None = None,
    *carried: Tensor,
    outs: list[Tensor],
    body: Function,
    condition: Function | None = None,
) -> Expr:
    return _Loop(_single(turns) if turns is not None else None, list(carried), outs, body, condition).written()


@keras_op("Scan", layout="fixed")
def scan(
    *xs: Tensor,
    outs: list[Tensor],
    body: Function,
    num_scan_inputs: int,
    scan_input_axes: Ints = (),
    scan_output_axes: Ints = (),
    scan_input_directions: Ints = (),
    scan_output_directions: Ints = (),
) -> Expr:
    """`ops.scan` over first axes: the layout has put all others there."""
    count = len(xs) - num_scan_inputs
    backwards = {*(scan_input_directions or [0] * num_scan_inputs)}
    backwards |= {*(scan_output_directions or [0] * (len(outs) - count))}
    if len(backwards) > 1:
        raise CannotBind("some of its sequences run forwards and some backwards")
    sequences = list(xs[count:])
    over: Expr = _tuple(sequences)
    if len(sequences) > 1 and not isinstance(sequences[0].shape[0], int):
        body, over = _by_index(body, sequences)
    return _scanned(list(xs[:count]), over, outs, body, reverse=backwards == {1})


# ***** values *****


def _tuple(items: Sequence[Expr]) -> Expr:
    """One value as it is, several as a tuple."""
    return items[0] if len(items) == 1 else Items(tuple(items))


def _initial(value: Tensor) -> Expr:
    """An initial value as a tensor: a loop keeps the types with which it begins."""
    array = constant_of(value.value)
    if array is not None and array.ndim == 0:
        return call("ops.array", array.item(), dtype=dtype_argument(value.dtype))
    if value.value.is_initializer() and value.value.metadata_props.get(KIND, "constant") != "constant":
        return call("ops.convert_to_tensor", value)
    return value


def _results(step: Function) -> list[Ref]:
    """What a function returns, one by one."""
    items = step.result.items if isinstance(step.result, Items) else (step.result,)
    return [item for item in items if isinstance(item, Ref)]


# Operators whose result TensorFlow knows no sizes of, with the inputs that decide on them where these are computed.
_LOOSE = {"Slice": (1, 2, 3, 4), "Expand": (1,), "Reshape": (1,), "Tile": (1,), "Pad": (1,), "Resize": (2, 3)}
_LOOSE |= {"Range": (0, 1, 2), "ConstantOfShape": (0,), "OneHot": (1,)}
_UNSIZED = {"NonZero", "Compress", "Unique", "NonMaxSuppression", "Loop"}


def _states(step: Function, formals: Sequence[ir.Value]) -> list[Expr]:
    """What a turn hands on. TensorFlow lets no turn forget sizes: a value whose sizes it cannot see is told them."""
    return [
        call("ops.reshape", result, call("ops.shape", Ref(formal))) if _unsized(result.value, set()) else result
        for formal, result in zip(formals, _results(step), strict=False)
    ]


def _unsized(value: ir.Value, seen: set[ir.Node]) -> bool:
    node = value.producer()
    if node is None or node in seen or (seen and all(other.graph is not node.graph for other in seen)):
        return False  # made before the loop
    seen.add(node)
    computed = [node.inputs[at] for at in _LOOSE.get(node.op_type, ()) if at < len(node.inputs)]
    if node.op_type in _UNSIZED or any(each is not None and constant_of(each) is None for each in computed):
        return True
    return any(_unsized(each, seen) for each in node.inputs if each is not None)


def _same(a: Tensor, b: Tensor) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape


def _sizes(result: Tensor, around: Sequence[Tensor]) -> tuple[int | Size, ...] | None:
    """The sizes of what one turn gives, as they are told outside of the loop; None where they are not."""
    known = {size for value in around for size in value.shape}
    made_up = [
        s for s in result.shape if isinstance(s, str) and (s == "?" or (s.startswith("unk__") and s not in known))
    ]
    return None if made_up else tuple(Size(size) if isinstance(size, str) else size for size in result.shape)


def _trains(body: Function) -> bool:
    """Whether a layer in it changes something in training: `ops.map` calls its function once more than it says."""
    statements = [inner for statement in body.statements for inner in (statement, *statement.inner())]
    parts = [part for statement in statements for part in walk(statement.expr)]
    return any(isinstance(part, Apply) and part.layer.takes_training for part in parts)


def _named(step: Function, name: str) -> str:
    """The author's name of a function, else `name`."""
    return step.name if step.name not in ("body", "condition") else name


# ***** scans *****


def _by_index(body: Function, sequences: list[Tensor]) -> tuple[Function, Expr]:
    """A scan over indices: TensorFlow's `ops.scan` takes several sequences only if it knows how long they are."""
    values = body.values()
    states, slices = values[: -len(sequences)], values[-len(sequences) :]
    index = ir.Value(name="index", shape=ir.Shape([]), type=ir.TensorType(ir.DataType.INT32))
    reading = [Statement([value], x[Ref(index)]) for value, x in zip(slices, sequences, strict=True)]
    names = (*(body.names[: len(states)] or [""] * len(states)), "i")
    step = replace(body, parameters=(*states, index), names=names, statements=[*reading, *body.statements], items=[])
    return step, call("ops.arange", _length(sequences[0]))


def _length(sequence: Tensor) -> int | Size:
    size = sequence.shape[0]
    if size == "?":
        raise CannotBind("the length of what it scans is not known")
    return Size(size) if isinstance(size, str) else size


def _scanned(carried: list[Tensor], xs: Expr, outs: list[Tensor], body: Function, *, reverse: bool = False) -> Expr:
    """`(state, results)` of a scan over `xs`, one after the other."""
    count = len(carried)
    values, results = body.values(), _results(body)
    states, given = _states(body, values[:count]), results[count:] or results[:1]  # a scan must give something
    packed = [part[0] if len(part) == 1 else tuple(part) for part in (values[:count], values[count:])]
    if not carried and not reverse and not _trains(body):
        return call("ops.map", replace(body, name=_named(body, "step"), parameters=(packed[1],)), xs)
    initial = [_initial(value) for value in carried]
    step = replace(
        body,
        name=_named(body, "step"),
        parameters=tuple(packed),
        like=(*initial, *(None for _ in values[count:])),
        result=Items((_tuple(states), _tuple(given))),
    )
    alike = len(states) == len(given) and all(_same(a, b) for a, b in zip(carried, given, strict=True))
    if alike:
        whole = call("ops.scan", step, _tuple(initial), xs, reverse=reverse or None)
    else:
        sizes = [_sizes(result, carried) for result in given]
        if any(each is None for each in sizes):
            raise CannotBind("the sizes of what a turn gives are known in the turn only")
        like = [
            call("ops.zeros", each, dtype=dtype_argument(result.dtype))
            for each, result in zip(sizes, given, strict=True)
        ]
        whole = call("scan_results", step, _tuple(initial), xs, _tuple(like), reverse=reverse or None)
    if count in (0, len(outs)):
        return whole[1 if count == 0 else 0]
    return whole if count == 1 and len(given) == 1 else call("keras.tree.flatten", whole)


# ***** loops *****


@dataclass(frozen=True)
class _Loop:
    """A loop that runs while a condition of what it carries holds, and for a number of turns at most."""

    turns: Expr | None
    carried: list[Tensor]
    outs: list[Tensor]
    body: Function
    condition: Function | None

    def written(self) -> Expr:
        """The call of the loop function that fits."""
        if self.turns is None and self.condition is None:
            raise CannotBind("the loop never ends")
        if any(is_sequence(value.value) for value in self.carried):
            raise CannotBind("it carries a sequence of tensors whose number or shapes are known at run time only")
        if any(value.value.shape is None for value in self.carried):
            raise CannotBind("the rank of what the loop carries is not known")
        stacks = len(self.outs) > len(self.carried)
        counted = self.condition is None and not self._grows()
        if counted and not stacks:
            return self._for()
        if counted and isinstance(self.turns, Literal | Size):
            step = self._step()
            number, *states = step.parameters
            last = replace(step, parameters=(*states, number), names=(*step.names[1:], *step.names[:1]))
            return _scanned(self.carried, call("ops.arange", self.turns, dtype="int64"), self.outs, last)
        return self._collecting() if stacks else self._while()

    # ---- parts ----

    def _step(self) -> Function:
        """The body; the number of the turn is `i` unless the author calls it otherwise."""
        body = self.body
        return replace(body, name=_named(body, "step"), names=body.names if any(body.names) else ("i",))

    def _reads_number(self) -> bool:
        return bool(self.body.values()[0].uses())

    def _grows(self) -> bool:
        return any(None in axes for axes in self._invariants())

    def _invariants(self) -> list[list[int | str | None]]:
        """The sizes of what is carried, None for those that differ from turn to turn."""
        found = []
        for formal, result in zip(self.body.values()[1:], _results(self.body), strict=False):
            if formal.shape is None or result.value.shape is None or len(formal.shape) != result.rank:
                raise CannotBind("the rank of what the loop carries is not the same in every turn")
            found.append([a if a == b else None for a, b in zip(dims(formal), result.shape, strict=True)])
        return found

    def _limit(self) -> Expr:
        """The number of turns to compare an int64 with."""
        assert self.turns is not None
        return call("ops.cast", self.turns, "int64") if isinstance(self.turns, Size) else self.turns

    # ---- forms ----

    def _for(self) -> Expr:
        number, *states = self.body.values()
        plain = not self._reads_number() and isinstance(self.turns, Literal | Size)
        initial = [_initial(value) for value in self.carried]
        step = replace(
            self._step(),
            parameters=(number, states[0] if len(states) == 1 else tuple(states)),
            like=(None, *initial),
            result=_tuple(_states(self.body, states)),
        )
        first: Expr = Literal(0) if plain else call("ops.array", 0, dtype="int64")
        return call("ops.fori_loop", first, self.turns if plain else self._limit(), step, _tuple(initial))

    def _numbered(self) -> bool:
        """Whether the number of the turn is carried: the body reads it, or it alone ends the loop."""
        return self._reads_number() or self.condition is None

    def _asked(self) -> Function:
        """The condition as a function of everything that is carried."""
        names = self._step().names
        if self.condition is not None:
            asked = replace(self.condition, name=_named(self.condition, "condition"))
            if not any(asked.names):
                asked = replace(asked, names=(names + ("",) * len(self.carried))[1 : 1 + len(self.carried)])
            if not self._numbered():
                return asked
            return replace(asked, parameters=(_new_number(), *asked.parameters), names=(names[0], *asked.names))
        number = _new_number()
        others = tuple(ir.Value(name=f"{v.name}_asked", shape=v.shape, type=v.type) for v in self.body.values()[1:])
        return Function(
            "condition", (number, *others), [], Binary("<", Ref(number), self._limit()), names=self._step().names
        )

    def _state(self) -> tuple[list[Expr], Function, Function]:
        """Initial values, condition and step of a while loop; the number of the turn comes first if it is carried."""
        initial = [_initial(value) for value in self.carried]
        step, asked = self._step(), self._asked()
        grows = self._grows()
        results: list[Expr] = list(_results(self.body)[: len(initial)]) if grows else _states(step, step.values()[1:])
        if self._numbered():
            initial = [call("ops.array", 0, dtype="int64"), *initial]
            results = [Ref(step.values()[0]) + 1, *results]
        else:
            step = replace(step, parameters=step.parameters[1:], names=step.names[1:])
        like = tuple(initial)
        return initial, replace(asked, like=like), replace(step, like=like, result=_tuple(results))

    def _most(self) -> Expr | None:
        """The number of turns where a condition may end the loop before; TensorFlow counts them in int32."""
        if self.condition is None or self.turns is None:
            return None
        return self.turns if isinstance(self.turns, Literal | Size) else call("ops.cast", self.turns, "int32")

    def _while(self) -> Expr:
        initial, asked, step = self._state()
        if self._grows():
            single = len(initial) == 1
            if single:
                step = replace(step, result=Items((step.result,)))
            sizes: list[list[int | str | None]] = [[]] * self._numbered() + self._invariants()
            shapes = [call("tf.TensorShape", [d if isinstance(d, int) else None for d in each]) for each in sizes]
            whole: Expr = call(
                "tf.while_loop", asked, step, Items(tuple(initial)), shape_invariants=tuple(shapes),
                maximum_iterations=self._most(),
            )  # fmt: skip
            whole = whole[0] if single else whole
        else:
            whole = call("ops.while_loop", asked, step, _tuple(initial), maximum_iterations=self._most())
        return self._without_number(whole)

    def _without_number(self, whole: Expr) -> Expr:
        if not self._numbered():
            return whole
        return whole[1] if len(self.outs) == 1 else whole[1:]

    def _collecting(self) -> Expr:
        """A while loop whose turns give results, which TensorFlow stacks."""
        if self._grows():
            raise CannotBind("what the loop carries grows, and its turns give results")
        initial, asked, step = self._state()
        given = _results(self.body)[len(self.carried) :]
        kinds = []
        for result in given:
            sizes = _sizes(result, self.carried) or tuple(d if isinstance(d, int) else -1 for d in result.shape)
            kinds.append(Items((wrap(sizes), dtype_argument(result.dtype))))
        states = step.result if len(initial) > 1 else Items((step.result,))
        step = replace(step, result=Items((states, Items(tuple(given), "[]"))))
        whole = call(
            "while_loop_results", asked, step, Items(tuple(initial)), Items(tuple(kinds), "[]"),
            maximum_iterations=self._most(),
        )  # fmt: skip
        return self._without_number(whole)


def _new_number() -> ir.Value:
    return ir.Value(name="turn", shape=ir.Shape([]), type=ir.TensorType(ir.DataType.INT64))
