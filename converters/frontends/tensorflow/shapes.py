"""Shapes of what ONNX nodes make, with sizes as numbers or expressions; None is a size that is not known."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import onnx_ir as ir

from porter.converters.frontends.tensorflow.dims import Dim, add, divide, multiply, product, round_up, subtract

Shape = list[Dim | None]
Contents = Mapping[ir.Value, tuple[Dim, ...]]
_rules: dict[str, Callable[..., list[Shape | None]]] = {}


_UNCHANGED = [
    "Abs", "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "BatchNormalization", "BitwiseNot", "Cast",
    "Ceil", "Celu", "Clip", "Cos", "Cosh", "CumSum", "Dropout", "Elu", "Erf", "Exp", "Floor", "Gelu",
    "GroupNormalization", "HardSigmoid", "HardSwish", "Hardmax", "Identity", "InstanceNormalization", "IsInf",
    "IsNaN", "LRN", "LayerNormalization", "LeakyRelu", "Log", "LogSoftmax", "Mish", "Neg", "Not", "Reciprocal",
    "RMSNormalization", "Relu", "ReverseSequence", "Round", "ScatterElements", "ScatterND", "Selu", "Sigmoid",
    "Sign", "Sin", "Sinh", "Softmax", "Softplus", "Softsign", "Sqrt", "Swish", "Tan", "Tanh", "ThresholdedRelu",
    "Trilu",
]  # fmt: skip
_BROADCASTING = [
    "Add", "And", "BitShift", "BitwiseAnd", "BitwiseOr", "BitwiseXor", "Div", "Equal", "Greater",
    "GreaterOrEqual", "Less", "LessOrEqual", "Max", "Mean", "Min", "Mod", "Mul", "Or", "PRelu", "Pow", "Sub",
    "Sum", "Where", "Xor",
]  # fmt: skip


class Unknown(Exception):
    """Something that the shape depends on is not known."""


def sizes_of(value: ir.Value | None) -> Shape:
    """The sizes of a value.

    Raises:
        Unknown: not even its rank is known.
    """
    if value is None or value.shape is None:
        raise Unknown
    return [size if isinstance(size, int) else size.value for size in value.shape]


def infer(node: ir.Node, contents: Contents) -> None:
    """Give the outputs of a node their shapes, where they can be told and are not known."""
    rule = _rules.get(node.op_type)
    if rule is None or node.domain:
        return
    try:
        found = rule(node, contents)
    except Unknown:
        return
    for output, shape in zip(node.outputs, found, strict=False):
        if shape is not None and output.shape is None:
            output.shape = ir.Shape(shape)


def shape_rule(*names: str) -> Callable:
    """Register how the outputs of operators get their shapes."""

    def register(function: Callable) -> Callable:
        _rules.update(dict.fromkeys(names, function))
        return function

    return register


def content_of(node: ir.Node, position: int, contents: Contents) -> list[Dim]:
    """The elements of an operand; raises Unknown."""
    value = node.inputs[position] if position < len(node.inputs) else None
    if value is None or value not in contents:
        raise Unknown
    return list(contents[value])


def numbers_of(node: ir.Node, position: int, contents: Contents) -> list[int]:
    """The elements of an operand, all numbers; raises Unknown."""
    found = content_of(node, position, contents)
    if not all(isinstance(item, int) for item in found):
        raise Unknown
    return [item for item in found if isinstance(item, int)]


def _times(sizes: Shape) -> Dim:
    if any(size is None for size in sizes):
        raise Unknown
    return product(size for size in sizes if size is not None)


@shape_rule(*_UNCHANGED)
def _same(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [sizes_of(node.inputs[0])] * len(node.outputs)


@shape_rule(*_BROADCASTING)
def _broadcast(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [broadcast(*(sizes_of(value) for value in node.inputs))]


def broadcast(*shapes: Shape) -> Shape:
    """The shape that shapes give together."""
    rank = max(len(shape) for shape in shapes)
    ones: Shape = [1] * rank
    columns = zip(*([*ones[len(shape) :], *shape] for shape in shapes), strict=True)
    return [_together(set(column) - {1}) for column in columns]


def _together(sizes: set[Dim | None]) -> Dim | None:
    numbers = [size for size in sizes if isinstance(size, int)]
    if numbers:
        return numbers[0]
    return 1 if not sizes else next(iter(sizes)) if len(sizes) == 1 else None


@shape_rule("Transpose")
def _transpose(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    order = node.attributes.get_ints("perm", list(reversed(range(len(shape)))))
    return [[shape[axis] for axis in order]]


@shape_rule("Unsqueeze")
def _unsqueeze(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape, axes = sizes_of(node.inputs[0]), numbers_of(node, 1, contents)
    rank = len(shape) + len(axes)
    rest = iter(shape)
    new = {axis % rank for axis in axes}
    return [[1 if axis in new else next(rest) for axis in range(rank)]]


@shape_rule("Squeeze")
def _squeeze(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    dropped = {axis % len(shape) for axis in numbers_of(node, 1, contents)}
    return [[size for axis, size in enumerate(shape) if axis not in dropped]]


@shape_rule("Reshape")
def _reshape(node: ir.Node, contents: Contents) -> list[Shape | None]:
    wanted = content_or_blank(node, 1, contents)
    if 0 in wanted and not node.attributes.get_int("allowzero", 0):
        source = sizes_of(node.inputs[0])
        wanted = [source[i] if size == 0 else size for i, size in enumerate(wanted)]
    if -1 in wanted:
        known = [size for size in wanted if size != -1]
        rest: Dim | None = None
        try:
            source = sizes_of(node.inputs[0])
            for size in [each for each in known if each is None or each != 1]:
                if size in source:  # the same size on both sides, known or not by more than its name
                    if size is None:
                        raise Unknown
                    source.remove(size)
                    known.remove(size)
            rest = divide(_times(source), _times(known))
        except Unknown:
            pass
        wanted = [rest if size == -1 else size for size in wanted]
    return [wanted]


def content_or_blank(node: ir.Node, position: int, contents: Contents) -> Shape:
    """The sizes that a vector holds; of one that is computed only their number is known."""
    value = node.inputs[position]
    if value in contents:
        return list(contents[value])
    length = sizes_of(value)[0]
    if not isinstance(length, int):
        raise Unknown
    producer = value.producer()
    if producer is not None and producer.op_type == "Concat" and all(v.shape is not None for v in producer.inputs):
        parts: Shape = []
        for part in producer.inputs:
            count = sizes_of(part)[0]
            parts += list(contents[part]) if part in contents else [None] * (count if isinstance(count, int) else 0)
        if len(parts) == length:
            return parts
    return [None] * length


@shape_rule("Expand")
def _expand(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [broadcast(sizes_of(node.inputs[0]), content_or_blank(node, 1, contents))]


@shape_rule("ConstantOfShape")
def _constant_of_shape(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [content_or_blank(node, 0, contents)]


@shape_rule("Shape")
def _shape(node: ir.Node, contents: Contents) -> list[Shape | None]:
    rank = len(sizes_of(node.inputs[0]))
    return [[len(range(rank)[node.attributes.get_int("start", 0) : node.attributes.get_int("end", rank)])]]


@shape_rule("Size", "NonZeroCount")
def _scalar(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [[]]


@shape_rule("Concat")
def _concat(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shapes = [sizes_of(value) for value in node.inputs]
    axis = node.attributes["axis"].as_int() % len(shapes[0])
    total: Dim | None = 0
    for shape in shapes:
        total = None if total is None or shape[axis] is None else add(total, shape[axis])
    rest = [
        next((size for size in column if isinstance(size, int)), next((s for s in column if s is not None), None))
        for column in zip(*shapes, strict=True)
    ]
    return [[total if i == axis else size for i, size in enumerate(rest)]]


@shape_rule("Split")
def _split(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    axis = node.attributes.get_int("axis", 0) % len(shape)
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        parts: Shape = list(content_or_blank(node, 1, contents))
    else:
        size = shape[axis]
        parts = [None if size is None else divide(size, len(node.outputs))] * len(node.outputs)
    return [[part if i == axis else size for i, size in enumerate(shape)] for part in parts]


@shape_rule("Slice")
def _slice(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    axes = numbers_of(node, 3, contents) if len(node.inputs) > 3 else list(range(len(shape)))
    count = len(axes)

    def part(position: int, default: list[Dim]) -> list[Dim | None]:
        if position >= len(node.inputs) or node.inputs[position] is None:
            return list(default)
        return content_or_blank(node, position, contents)

    starts, ends, steps = part(1, []), part(2, []), part(4, [1] * count)
    result = list(shape)
    for axis, start, end, step in zip(axes, starts, ends, steps, strict=True):
        result[axis % len(shape)] = _sliced(shape[axis % len(shape)], start, end, step)
    return [result]


def _sliced(size: Dim | None, start: Dim | None, end: Dim | None, step: Dim | None) -> Dim | None:
    if size is None or start is None or end is None or not isinstance(step, int):
        return None
    if isinstance(size, int) and isinstance(start, int) and isinstance(end, int):
        return len(range(size)[slice(start, None if step < 0 and end < -size else end, step)])
    if step < 0:
        whole = start == -1 and isinstance(end, int) and end < -(1 << 30)
        return size if step == -1 and whole else None
    first = add(size, start) if isinstance(start, int) and start < 0 else start
    last = size if isinstance(end, int) and end > 1 << 30 else end
    last = add(size, last) if isinstance(last, int) and last < 0 else last
    if isinstance(last, int) and not isinstance(size, int) and last != 0:
        return f"Min({size}, {last})" if first == 0 and step == 1 else None
    return round_up(subtract(last, first), step)


@shape_rule("Gather")
def _gather(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape, picked = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    axis = node.attributes.get_int("axis", 0) % len(shape)
    return [[*shape[:axis], *picked, *shape[axis + 1 :]]]


@shape_rule("GatherElements")
def _gather_elements(node: ir.Node, contents: Contents) -> list[Shape | None]:
    return [sizes_of(node.inputs[1])]


@shape_rule("GatherND")
def _gather_nd(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape, index = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    batch = node.attributes.get_int("batch_dims", 0)
    if not isinstance(index[-1], int):
        raise Unknown
    return [[*index[:-1], *shape[batch + index[-1] :]]]


@shape_rule("Pad")
def _pad(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    pads = content_of(node, 1, contents)
    return [[None if size is None else add(size, add(a, b)) for size, a, b in _ends(shape, pads)]]


def _ends(shape: Shape, pads: list[Dim]) -> list[tuple[Dim | None, Dim, Dim]]:
    rank = len(shape)
    return list(zip(shape, pads[:rank], pads[rank:], strict=True))


@shape_rule("Tile")
def _tile(node: ir.Node, contents: Contents) -> list[Shape | None]:
    repeats = content_or_blank(node, 1, contents)
    pairs = zip(sizes_of(node.inputs[0]), repeats, strict=True)
    return [[None if a is None or b is None else multiply(a, b) for a, b in pairs]]


@shape_rule(
    "ReduceMax",
    "ReduceMin",
    "ReduceSum",
    "ReduceMean",
    "ReduceProd",
    "ReduceL1",
    "ReduceL2",
    "ReduceLogSumExp",
    "ReduceSumSquare",
)
def _reduce(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    if len(node.inputs) > 1 and node.inputs[1] is not None:
        axes = {axis % len(shape) for axis in numbers_of(node, 1, contents)} if shape else set()
        if not axes and node.attributes.get_int("noop_with_empty_axes", 0):
            return [shape]
        axes = axes or set(range(len(shape)))
    else:
        axes = set(range(len(shape)))
    return [_reduced(shape, axes, bool(node.attributes.get_int("keepdims", 1)))]


def _reduced(shape: Shape, axes: set[int], keep: bool) -> Shape:
    if keep:
        return [1 if axis in axes else size for axis, size in enumerate(shape)]
    return [size for axis, size in enumerate(shape) if axis not in axes]


@shape_rule("ArgMax", "ArgMin")
def _arg(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    axis = node.attributes.get_int("axis", 0) % len(shape)
    return [_reduced(shape, {axis}, bool(node.attributes.get_int("keepdims", 1)))]


@shape_rule("TopK")
def _top_k(node: ir.Node, contents: Contents) -> list[Shape | None]:
    shape = sizes_of(node.inputs[0])
    axis = node.attributes.get_int("axis", -1) % len(shape)
    wanted = content_or_blank(node, 1, contents)[0]
    shape[axis] = wanted
    return [shape, list(shape)]


@shape_rule("MatMul")
def _matmul(node: ir.Node, contents: Contents) -> list[Shape | None]:
    a, b = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    if len(a) < 2 or len(b) < 2:
        raise Unknown
    return [[*broadcast(a[:-2], b[:-2]), a[-2], b[-1]] if len(a) > 2 or len(b) > 2 else [a[-2], b[-1]]]


@shape_rule("Gemm")
def _gemm(node: ir.Node, contents: Contents) -> list[Shape | None]:
    a, b = sizes_of(node.inputs[0]), sizes_of(node.inputs[1])
    flipped_a, flipped_b = node.attributes.get_int("transA", 0), node.attributes.get_int("transB", 0)
    return [[a[1] if flipped_a else a[0], b[0] if flipped_b else b[1]]]


@shape_rule("Einsum")
def _einsum(node: ir.Node, contents: Contents) -> list[Shape | None]:
    terms, _, result = node.attributes["equation"].as_string().replace(" ", "").partition("->")
    sizes: dict[str, Dim | None] = {}
    for term, value in zip(terms.split(","), node.inputs, strict=True):
        if "." in term:
            raise Unknown
        for letter, size in zip(term, sizes_of(value), strict=True):
            if sizes.get(letter) in (None, 1) or isinstance(size, int):
                sizes[letter] = size
    return [[sizes[letter] for letter in result]]
